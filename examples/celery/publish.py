"""Publishes a task twice, and waits: `python publish.py TASK ORDER`; or shows the orders."""

import sqlite3
import sys

from tasks import app

import oncekey

if not sys.argv[1:]:
    for row in sqlite3.connect("shop.db").execute("SELECT number FROM orders"):
        print("order", *row)
    sys.exit()

_, task, order = sys.argv
published = [app.send_task(f"tasks.{task}", [int(order)]) for _ in range(2)]
for each in published:
    try:
        print(each.get(timeout=300))
    except oncekey.TerminalError as error:
        print("failed for good:", error)
