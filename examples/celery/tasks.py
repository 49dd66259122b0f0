"""Tasks of Celery with one effect for each key, however often their messages are delivered."""

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from celery import Celery

import oncekey

app = Celery("shop", broker="redis://127.0.0.1:6379/0", backend="redis://127.0.0.1:6379/1")
app.conf.update(
    task_acks_late=True,  # a message is acknowledged when its task is over, and not before
    task_reject_on_worker_lost=True,  # when only the child is killed, it is delivered at once
    worker_prefetch_multiplier=1,
    # When all of a worker is gone, Redis delivers again after this. It may be short, since a task
    # that still runs is not run twice: the second delivery is told so, and comes again later.
    broker_transport_options={
        "visibility_timeout": 5,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
    },
)
# Opened before the pool is forked; each child goes on with it by itself.
ledger = oncekey.open("sqlite:///shop.db")
# What is worth another attempt, after a second. A TerminalError is not: it stays what it is.
AGAIN = {
    "autoretry_for": (oncekey.InProgress, oncekey.StoreUnavailable, sqlite3.OperationalError),
    "default_retry_delay": 1,
    "max_retries": 600,
}


@app.task(**AGAIN)  # Celery's decorator is outside, ours is next to the function
@oncekey.once(key=lambda order: f"mail:{order}", ledger=ledger, endpoint="mails")
def send_mail(order: int) -> str:
    if order <= 0:
        raise oncekey.TerminalError(f"there is no order {order}")
    with Path("mails.txt").open("a") as mails:
        print(order, file=mails)
    stand_still()
    return f"mail for order {order} is sent"


@app.task(**AGAIN)
def save_order(order: int) -> str:
    with closing(sqlite3.connect("shop.db")) as database, database:  # one transaction
        return str(ledger.once(f"order:{order}", insert, database, order, transaction=database))


def insert(database: sqlite3.Connection, order: int) -> str:
    database.execute("CREATE TABLE IF NOT EXISTS orders (number INTEGER)")
    database.execute("INSERT INTO orders VALUES (?)", [order])
    stand_still()
    return f"order {order} is saved"


def stand_still() -> None:
    """While there is a file `still.txt`; so that this process can be killed where it is."""
    if Path("still.txt").exists():
        Path("stands.txt").write_text(str(os.getpid()))
    while Path("still.txt").exists():
        time.sleep(0.05)
