"""What happens after a crash: `python pay.py KEY [--takeover RULE] [--die before|after]`."""

import argparse
import json
import os
import signal
from pathlib import Path

import oncekey
from oncekey import DidNotHappen, Kind, Operation, Outcome

ledger = oncekey.open("sqlite:///oncekey.db")
bank = Path("bank.txt")  # stands for a bank that can be asked by reference


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def pay(reference: str, dies: str | None) -> str:
    if dies == "before":
        die()
    with bank.open("a") as payments:
        print(reference, file=payments)
    if dies == "after":
        die()
    return f"{reference} is paid"


def ask_the_bank(operation: Operation) -> Outcome | DidNotHappen:
    if not bank.exists() or operation.ref.key not in bank.read_text().split():
        return DidNotHappen()
    return Outcome(Kind.VALUE, body=json.dumps(f"{operation.ref.key} was paid").encode())


words = argparse.ArgumentParser()
words.add_argument("key")
words.add_argument("--takeover", default="recover", choices=["rerun", "refuse", "recover"])
words.add_argument("--die", choices=["before", "after"])
given = words.parse_args()
hook = ask_the_bank if given.takeover == "recover" else None
try:
    print(ledger.once(given.key, pay, given.key, given.die, takeover=given.takeover, recover=hook))
except oncekey.OutcomeUnknown as error:
    raise SystemExit(str(error)) from None
