"""Effect and outcome in one transaction: `python shop.py KEY ITEM [die]`, or no words to look."""

import os
import signal
import sqlite3
import sys

import oncekey

connection = sqlite3.connect("shop.db")
connection.execute("CREATE TABLE IF NOT EXISTS orders (number INTEGER PRIMARY KEY, item TEXT)")
ledger = oncekey.open("sqlite:///shop.db")  # the same file: it can commit with the orders


def save_order(item: str, dies: bool) -> int | None:
    number = connection.execute("INSERT INTO orders (item) VALUES (?)", [item]).lastrowid
    if dies:
        os.kill(os.getpid(), signal.SIGKILL)  # as the power cut would, after the write
    return number


def main(*words: str) -> None:
    if not words:
        for number, item in connection.execute("SELECT * FROM orders ORDER BY number"):
            print(number, item)
        return
    key, item, dies = words[0], words[1], "die" in words
    with connection:  # commits at the end, rolls back on an error
        number = ledger.once(key, save_order, item, dies, transaction=connection)
    print(f"order {number}: {item}")


main(*sys.argv[1:])
