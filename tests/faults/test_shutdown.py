"""Processes that end in good order, and names that no later process can have."""

import asyncio
import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import oncekey
from oncekey import LedgerClosed, Operation, Proceed
from oncekey.asgi import IdempotencyMiddleware
from oncekey.core.ports import Query
from tests.fixtures.bare import request
from tests.fixtures.claimant import claimant, outcome_of, ref_of
from tests.fixtures.processes import Process, Start
from tests.fixtures.stores import until
from tests.fixtures.street import Street

# Far longer than a test may take: whatever lapses here lapses at once.
LONG = {"lease": 3600.0, "heartbeat": 1.0}


@pytest.fixture
def shops(url: str, tmp_path: Path) -> Iterator[Street]:
    made = Street(url, tmp_path, **LONG)
    yield made
    made.close()


class Worker:
    """Another process with a ledger, told what to do."""

    def __init__(self, start: Start, url: str, **options: Any) -> None:
        self.process: Process = start(claimant, url, {**LONG, **options})

    def __call__(self, verb: str, *words: Any, **options: Any) -> Any:
        self.process.tell((verb, words, options))
        return self.process.hear()


def test_a_server_that_is_asked_to_stop_finishes_and_keeps_what_runs(shops: Street) -> None:
    leaving, staying = shops.open(), shops.open(in_flight="conflict")
    order = leaving.order("/held", "k")
    leaving.signal(signal.SIGTERM)
    assert staying.ask("/held", "k").problem == "request-in-progress"
    leaving.go()
    answer = order.answer()
    assert (answer.status, answer.replayed) == (201, False)
    assert leaving.join() in {0, -signal.SIGTERM}
    assert staying.ask("/held", "k").body == answer.body
    assert shops.effects("k") == [answer.json["execution"]]


def test_what_is_held_when_a_ledger_closes_lapses_at_once(start: Start, url: str) -> None:
    leaving, staying = Worker(start, url), Worker(start, url)
    assert leaving("begin", "k") == "Proceed"
    assert staying("begin", "k") == "Busy"
    leaving("close", 0.0)
    assert staying("begin", "k") == "Proceed"
    # The one that left has nothing to say any more, closed twice or gone for good.
    leaving("close", 0.0)
    assert staying("begin", "k") == "Busy"
    leaving.process._ours.close()
    assert leaving.process.join() == 0
    assert staying("settle", "k") == "settled"
    assert staying("begin", "k") == "Replay"


def test_what_may_not_run_again_is_unknown_when_its_ledger_closes(start: Start, url: str) -> None:
    leaving, staying = Worker(start, url), Worker(start, url)
    assert leaving("begin", "k", takeover="refuse") == "Proceed"
    leaving("close", 0.0)
    assert staying("begin", "k", takeover="refuse") == "Unknown"


def test_a_ledger_waits_for_what_runs_before_it_closes(url: str) -> None:
    ledger, other = oncekey.open(url, **LONG), oncekey.open(url, **LONG)
    decision = ledger.begin(Operation(ref_of("k")))
    assert isinstance(decision, Proceed)

    def settle_late() -> None:
        until(lambda: ledger.closed)
        decision.claim.settle(outcome_of("done"))

    late = threading.Thread(target=settle_late)
    late.start()
    ledger.close(grace=3600.0)
    late.join()
    record = other.peek(ref_of("k"))
    assert record is not None
    assert record.outcome == outcome_of("done")
    other.close()


def test_a_closed_ledger_claims_and_keeps_nothing(url: str) -> None:
    ledger = oncekey.open(url, **LONG)
    decision = ledger.begin(Operation(ref_of("k")))
    assert isinstance(decision, Proceed)
    ledger.close(grace=0.0)
    with pytest.raises(LedgerClosed):
        ledger.begin(Operation(ref_of("other")))
    with pytest.raises(LedgerClosed):
        decision.claim.settle(outcome_of("late"))
    other = oncekey.open(url, **LONG)
    assert isinstance(other.begin(Operation(ref_of("k"))), Proceed)
    other.close(grace=0.0)


def test_a_closed_ledger_looks_after_nothing(url: str) -> None:
    """Its files are closed, and their numbers may be somebody else's by now."""
    ledger = oncekey.open(url, **LONG)
    ledger.close(grace=0.0)
    for verb in (ledger.sweep, ledger.retention, lambda: ledger.list(Query())):
        with pytest.raises(LedgerClosed):
            verb()
    with pytest.raises(LedgerClosed):
        ledger.set_retention("interactive", 60.0)


def test_a_sweep_under_way_ends_when_its_ledger_closes(url: str) -> None:
    ledger, under_way, go_on = oncekey.open(url, **LONG), threading.Event(), threading.Event()
    brief = {"retention": {"interactive": 0.001}}
    filled = oncekey.open(url, **LONG, **brief)
    for number in range(300):
        decision = filled.begin(Operation(ref_of(f"k{number}")))
        assert isinstance(decision, Proceed)
        decision.claim.settle(outcome_of("done"))
    filled.close()
    ended: list[BaseException] = []

    def progress(done: int, total: int) -> None:
        under_way.set()
        go_on.wait()

    def sweep() -> None:
        try:
            ledger.sweep(progress)
        except LedgerClosed as error:
            ended.append(error)

    sweeping = threading.Thread(target=sweep)
    sweeping.start()
    under_way.wait()
    ledger.close(grace=0.0)
    go_on.set()
    sweeping.join()
    assert len(ended) == 1


def test_an_answer_that_comes_after_the_end_is_not_given(tmp_path: Path) -> None:
    """It was not kept: whoever retries may find that it ran again."""
    ledger = oncekey.open(f"sqlite:///{tmp_path}/oncekey.db")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        ledger.close(grace=0.0)
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})

    start, _ = asyncio.run(request(IdempotencyMiddleware(app, ledger=ledger)))
    assert start["status"] == 503


# -- names -------------------------------------------------------------------------------


def test_every_life_has_a_name_of_its_own(url: str) -> None:
    owners = []
    for _ in range(3):
        ledger = oncekey.open(url)
        owners.append(ledger.store.owner)
        ledger.close()
    assert len(set(owners)) == 3


def test_claims_from_before_a_reboot_are_nobodys(start: Start, tmp_path: Path) -> None:
    """Steady time begins again with each boot: an old heartbeat may lie far in the future."""
    path = tmp_path / "oncekey.db"
    before = Worker(start, f"sqlite:///{path}")
    assert before("begin", "k") == "Proceed"
    before.process.kill()
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE oncekey_owners SET boot = 'the last one', heartbeat_at = 1 << 60")
    for lock in (tmp_path / "oncekey.db-locks").glob("owner-*"):
        lock.unlink()
    after = Worker(start, f"sqlite:///{path}")
    assert after("begin", "k") == "Proceed"


def test_a_later_process_with_the_same_number_is_somebody_else(
    start: Start, tmp_path: Path
) -> None:
    """The kernel gives numbers of processes out again; here it is made to do so at once."""
    url = f"sqlite:///{tmp_path}/oncekey.db"
    witness, dead = Worker(start, url), Worker(start, url)
    assert dead("begin", "k") == "Proceed"
    number = dead.process.pid
    dead.process.kill()
    with Numbered(number):
        assert witness("begin", "k") == "Proceed"


class Numbered:
    """Any process with a certain number, as long as this lasts."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._last = Path("/proc/sys/kernel/ns_last_pid")

    def __enter__(self) -> None:
        for _ in range(1000):
            try:
                self._last.write_text(str(self._number - 1))
            except OSError:
                pytest.skip("only root may choose the number of a process")
            self._pid = os.posix_spawn("/bin/sleep", ["sleep", "600"], {})
            if self._pid == self._number:
                return
            self._end()
        pytest.skip("the number went to others all the time")

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
