"""Exactly once: effect and outcome in the application's own transaction, both or neither."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import oncekey
from oncekey import (
    ConfigurationError,
    InProgress,
    Kind,
    Ledger,
    Operation,
    Outcome,
    Proceed,
    Ref,
    Replay,
    Scope,
    TerminalError,
)
from tests.fixtures import banks
from tests.fixtures.banks import Bank, Mishap, pay
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.stores import sqlite_url

ROOT = Path(__file__).parents[2]
VALUE = Outcome(Kind.VALUE, body=b"1")


def ways(sqlite: list[Any], postgres: list[Any]) -> list[Any]:
    marks = [pytest.mark.postgres]
    return [
        *[pytest.param(("sqlite", way), id=f"sqlite-{way.__name__}") for way in sqlite],
        *[
            pytest.param(("postgres", way), id=f"postgres-{way.__name__}", marks=marks)
            for way in postgres
        ],
    ]


ALL = ways(banks.SQLITE + banks.EITHER, banks.POSTGRES + banks.EITHER)
# What goes on inside the ledger is the same for all; one of each make shows it.
SOME = ways([banks.plain], [banks.plain, banks.sqlalchemy_session])
DIE = """
import os, signal, sys, oncekey
from tests.fixtures import banks
ledger = oncekey.open(sys.argv[1])
bank = getattr(banks, sys.argv[2])(sys.argv[1])
with bank as transaction:
    ledger.once("k", lambda: banks.pay(transaction), transaction=transaction)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(params=ALL)
def bank(request: pytest.FixtureRequest, tmp_path: Path) -> Bank:
    kind, way = request.param
    if kind == "sqlite":
        return Bank(sqlite_url(tmp_path), way)
    server: PostgresServer = request.getfixturevalue("postgres")
    return Bank(new_schema(server.url()), way)


@pytest.fixture
def ledger(bank: Bank) -> Iterator[Ledger]:
    opened = oncekey.open(bank.url)
    yield opened
    opened.close()


def pay_once(ledger: Ledger, transaction: Any, **options: Any) -> Any:
    def charge() -> str:
        pay(transaction)
        return "paid"

    return ledger.once("k", charge, transaction=transaction, **options)


def operation(**options: Any) -> Operation:
    return Operation(Ref(Scope("t-default:_tenant:client:a", "pay"), "k"), **options)


def leave_behind(bank: Bank) -> None:
    """A claim of a process that has gone."""
    gone = oncekey.open(bank.url)
    assert isinstance(gone.begin(operation()), Proceed)
    gone.close(grace=0)


def test_effect_and_outcome_commit_together(ledger: Ledger, bank: Bank) -> None:
    answers = []
    for _ in range(3):
        with bank.begin() as transaction:
            answers.append(pay_once(ledger, transaction))
    assert answers == ["paid"] * 3
    assert bank.payments() == 1


def test_effect_and_outcome_roll_back_together(ledger: Ledger, bank: Bank) -> None:
    with bank.undone() as transaction:
        assert pay_once(ledger, transaction) == "paid"
    assert bank.payments() == 0

    with bank.begin() as transaction:
        assert pay_once(ledger, transaction) == "paid"
    assert bank.payments() == 1


def test_a_function_that_fails_leaves_nothing(ledger: Ledger, bank: Bank) -> None:
    def fail(transaction: Any) -> None:
        pay(transaction)
        raise Mishap

    with pytest.raises(Mishap), bank.begin() as transaction:
        ledger.once("k", fail, transaction, transaction=transaction)
    assert bank.payments() == 0
    with bank.begin() as transaction:
        assert pay_once(ledger, transaction) == "paid"


def test_an_answer_that_was_rolled_back_is_not_remembered(ledger: Ledger, bank: Bank) -> None:
    with bank.undone() as transaction:
        pay_once(ledger, transaction)
        assert pay_once(ledger, transaction) == "paid"
    with bank.begin() as transaction:
        pay_once(ledger, transaction)
    assert bank.payments() == 1


def test_of_duplicates_at_once_one_takes_effect(ledger: Ledger, bank: Bank) -> None:
    running, go_on = threading.Event(), threading.Event()

    def slowly() -> str:
        with bank.begin() as transaction:

            def charge() -> str:
                pay(transaction)
                running.set()
                go_on.wait()
                return "paid"

            answer: str = ledger.once("k", charge, transaction=transaction)
            return answer

    def beside() -> str:
        try:
            with bank.begin() as transaction:
                answer: str = pay_once(ledger, transaction)
                return answer
        except InProgress:
            return "busy"
        finally:
            go_on.set()

    with ThreadPoolExecutor() as threads:
        first = threads.submit(slowly)
        running.wait()
        if bank.url.startswith("sqlite"):
            # SQLite has one writer at a time: the second waits for the file, not for the key.
            go_on.set()
        second = threads.submit(beside)

    assert first.result() == "paid"
    assert second.result() == ("paid" if bank.url.startswith("sqlite") else "busy")
    assert bank.payments() == 1


@pytest.mark.parametrize("bank", SOME, indirect=True)
def test_a_kill_in_the_middle_leaves_neither_effect_nor_outcome(ledger: Ledger, bank: Bank) -> None:
    way = bank._begin.__name__
    done = subprocess.run(
        [sys.executable, "-c", DIE, bank.url, way], cwd=ROOT, check=False, timeout=60
    )
    assert done.returncode == -9
    assert bank.payments() == 0
    with bank.begin() as transaction:
        assert pay_once(ledger, transaction) == "paid"
    assert bank.payments() == 1


@pytest.mark.parametrize("bank", SOME, indirect=True)
def test_a_final_failure_is_stored_with_the_transaction(ledger: Ledger, bank: Bank) -> None:
    def refuse() -> None:
        raise TerminalError("no such account", status=422)

    with bank.begin() as transaction, pytest.raises(TerminalError):
        ledger.once("k", refuse, transaction=transaction)
    with bank.begin() as transaction, pytest.raises(TerminalError, match="no such account"):
        pay_once(ledger, transaction)
    assert bank.payments() == 0


def test_a_claim_from_outside_is_settled_inside(ledger: Ledger, bank: Bank) -> None:
    proceed = ledger.begin(operation())
    assert isinstance(proceed, Proceed)

    with bank.undone() as transaction:
        pay(transaction)
        proceed.claim.settle(VALUE, transaction=transaction)
    assert ledger.peek(operation().ref).outcome is None

    with bank.begin() as transaction:
        pay(transaction)
        proceed.claim.settle(VALUE, transaction=transaction)
    assert ledger.peek(operation().ref).outcome == VALUE
    assert bank.payments() == 1


@pytest.mark.parametrize("bank", SOME, indirect=True)
def test_a_takeover_inside_counts_when_it_commits(ledger: Ledger, bank: Bank) -> None:
    leave_behind(bank)

    with bank.undone() as transaction:
        taken = ledger.begin(operation(), transaction=transaction)
        assert isinstance(taken, Proceed)
        assert taken.claim.fence == 2
        taken.claim.settle(VALUE, transaction=transaction)
    assert ledger.peek(operation().ref).fence == 1

    with bank.begin() as transaction:
        taken = ledger.begin(operation(), transaction=transaction)
        assert isinstance(taken, Proceed)
        taken.claim.settle(VALUE, transaction=transaction)
    record = ledger.peek(operation().ref)
    assert (record.fence, record.outcome) == (2, VALUE)


@pytest.mark.parametrize("bank", SOME, indirect=True)
@pytest.mark.parametrize(
    "found", [VALUE, oncekey.DidNotHappen(), oncekey.CannotTell()], ids=["did", "not", "unknown"]
)
def test_what_recovery_finds_is_written_inside(ledger: Ledger, bank: Bank, found: Any) -> None:
    leave_behind(bank)
    asked = operation(takeover="recover")

    with bank.begin() as transaction:
        decision = ledger.begin(asked, recover=lambda _: found, transaction=transaction)
        if isinstance(decision, Proceed):
            decision.claim.settle(VALUE, transaction=transaction)

    expected = {Outcome: "Replay", oncekey.DidNotHappen: "Proceed", oncekey.CannotTell: "Unknown"}
    assert type(decision).__name__ == expected[type(found)]
    assert ledger.peek(operation().ref).outcome == (
        None if isinstance(found, oncekey.CannotTell) else VALUE
    )


@pytest.mark.parametrize("bank", SOME, indirect=True)
def test_an_expired_key_is_new_inside(bank: Bank) -> None:
    ledger = oncekey.open(bank.url, retention={"interactive": 0.001})
    for _ in range(2):
        with bank.begin() as transaction:
            decision = ledger.begin(operation(), transaction=transaction)
            while isinstance(decision, Replay):
                decision = ledger.begin(operation(), transaction=transaction)
            assert isinstance(decision, Proceed)
            decision.claim.settle(VALUE, transaction=transaction)
    ledger.close()


@pytest.mark.parametrize("bank", SOME, indirect=True)
def test_the_other_database_is_refused(bank: Bank, tmp_path: Path) -> None:
    elsewhere = oncekey.open("memory://")
    with pytest.raises(ConfigurationError), bank.begin() as transaction:
        elsewhere.begin(operation(), transaction=transaction)
    elsewhere.close()
