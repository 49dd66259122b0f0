"""Jobs of RQ with one effect for each key, however often they are enqueued and run."""

import os
import time
from pathlib import Path

from rq import Retry

import oncekey

# RQ forks a process for each job, which imports this file and opens the ledger.
ledger = oncekey.open("sqlite:///oncekey.db")


@oncekey.once(key=lambda order: f"mail:{order}", ledger=ledger, endpoint="mails")
def send_mail(order: int) -> str:
    if order <= 0:
        raise oncekey.TerminalError(f"there is no order {order}")
    stand_still()
    with Path("mails.txt").open("a") as mails:
        print(order, file=mails)
    return f"mail for order {order} is sent"


def mail_job(order: int) -> str | Retry:
    try:
        return str(send_mail(order))
    except oncekey.InProgress:
        return Retry(max=600, interval=1)  # another worker is at it: no failure, come again later


def stand_still() -> None:
    """While there is a file `still.txt`; so that this process can be killed where it is."""
    if Path("still.txt").exists():
        Path("stands.txt").write_text(str(os.getpid()))
    while Path("still.txt").exists():
        time.sleep(0.05)
