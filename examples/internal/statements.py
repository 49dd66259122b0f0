"""A bank drops files, and cannot say which it has sent before: `python statements.py FILE`."""

import json
import sys
from pathlib import Path

import oncekey
from oncekey import Internal

ledger = oncekey.open("sqlite:///oncekey.db")
statements = Internal(ledger, "bank-statements", retention="financial")


def book(account: str, lines: list[str]) -> int:
    with Path("booked.txt").open("a") as booked:
        booked.writelines(f"{account}: {line}\n" for line in lines)
    return len(lines)


def statement_arrived(file: Path) -> int:
    statement = json.loads(file.read_text())
    # Of what the statement says of itself: never the time of arrival, nor a digest of the body.
    token = statements.token(statement["account"], statement["number"])
    lines: int = statements.once(token, book, statement["account"], statement["lines"])
    return lines


print(f"{statement_arrived(Path(sys.argv[1]))} lines are booked")
