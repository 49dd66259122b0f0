"""Any function, called once for a key: `python invoices.py NUMBER`."""

import sys
import time
from pathlib import Path

import oncekey

ledger = oncekey.open("sqlite:///oncekey.db")


@oncekey.once(key=lambda number: f"invoice:{number}", ledger=ledger, endpoint="invoices", wait=10)
def send_invoice(number: int) -> str:
    if number <= 0:
        # For good: it is stored as a result is, and raised again for every later caller.
        raise oncekey.TerminalError("there is no such invoice")
    with Path("sent.txt").open("a") as sent:
        print(f"invoice {number}", file=sent)
    time.sleep(1)  # long enough for somebody else to come meanwhile
    return f"invoice {number} is sent"


if __name__ == "__main__":
    try:
        print(send_invoice(int(sys.argv[1])))
    except oncekey.TerminalError as error:
        sys.exit(f"it failed for good: {error}")
