"""Callers that go away while they wait: what they claimed is given back, never stuck."""

import asyncio
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import oncekey
from oncekey import (
    Busy,
    Claim,
    Kind,
    Ledger,
    Operation,
    Outcome,
    OutcomeUnknown,
    Proceed,
    Ref,
    Replay,
    Scope,
    Unknown,
)
from oncekey.asgi import IdempotencyMiddleware
from tests.fixtures.bare import request

DONE = Outcome(Kind.RESPONSE, 201, (), b"done")
# More turns of a loop than a claim in memory needs from its first line to its last.
TURNS = 12
SOON = 30.0


def operation(key: str = "k", **options: Any) -> Operation:
    return Operation(Ref(Scope(oncekey.namespace_of(), "POST /orders"), key), **options)


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    urls = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path}/oncekey.db"}
    opened = oncekey.open(urls[request.param])
    yield opened
    close(opened)


def close(ledger: Ledger) -> None:
    """A claim that was lost on the way would keep a ledger that is closed waiting for it."""
    assert not ledger._held
    ledger.close(grace=0)


async def turn(times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


async def cancel(task: asyncio.Task[Any]) -> Any:
    """The result of a task that is cancelled, when it had one already."""
    task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        return None


async def check_free(ledger: Ledger, key: str = "k") -> None:
    """Nobody has the key: the next caller gets it, at once or as soon as it is given back."""
    decision = await ledger.abegin(operation(key), wait=SOON)
    assert isinstance(decision, Proceed)
    await decision.claim.arelease()


async def hold(ledger: Ledger, key: str) -> Claim:
    decision = await ledger.abegin(operation(key))
    assert isinstance(decision, Proceed)
    return decision.claim


@pytest.mark.anyio
async def test_a_claim_for_a_cancelled_task_is_given_back(ledger: Ledger) -> None:
    for turns in range(TURNS):
        task = asyncio.create_task(ledger.abegin(operation(f"k{turns}")))
        await turn(turns)
        if isinstance(decision := await cancel(task), Proceed):
            await decision.claim.arelease()
        await check_free(ledger, f"k{turns}")


@pytest.mark.anyio
async def test_a_hundred_callers_cancelled_at_all_moments_leave_nothing(ledger: Ledger) -> None:
    tasks = []
    for number in range(100):
        tasks.append(asyncio.create_task(ledger.abegin(operation(f"k{number}"))))
        await turn(number % 5)
    for decision in [await cancel(task) for task in tasks]:
        if isinstance(decision, Proceed):
            await decision.claim.arelease()
    await asyncio.gather(*(check_free(ledger, f"k{number}") for number in range(100)))


@pytest.mark.anyio
async def test_a_takeover_that_is_cancelled_can_be_taken_over(ledger: Ledger) -> None:
    for turns in range(TURNS):
        (await hold(ledger, f"k{turns}")).abandon()
        task = asyncio.create_task(ledger.abegin(operation(f"k{turns}")))
        await turn(turns)
        if isinstance(decision := await cancel(task), Proceed):
            decision.claim.abandon()
        await check_free(ledger, f"k{turns}")


@pytest.mark.anyio
async def test_an_outcome_on_its_way_is_kept_when_its_task_is_cancelled(ledger: Ledger) -> None:
    for turns in range(1, TURNS):
        claim = await hold(ledger, f"k{turns}")
        task = asyncio.create_task(claim.asettle(DONE))
        await turn(turns)
        await cancel(task)
        after = await ledger.abegin(operation(f"k{turns}"), wait=SOON)
        assert isinstance(after, Replay)


@pytest.mark.anyio
async def test_a_release_on_its_way_is_done_when_its_task_is_cancelled(ledger: Ledger) -> None:
    for turns in range(1, TURNS):
        claim = await hold(ledger, f"k{turns}")
        task = asyncio.create_task(claim.arelease())
        await turn(turns)
        await cancel(task)
        await check_free(ledger, f"k{turns}")


class Waiting:
    """An app whose answer never comes."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.runs = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.runs += 1
        self.entered.set()
        await asyncio.Event().wait()


@pytest.mark.anyio
async def test_a_handler_that_is_cut_off_runs_again_where_that_is_the_rule(ledger: Ledger) -> None:
    app = Waiting()
    protected = IdempotencyMiddleware(app, ledger=ledger, in_flight="attach")
    for runs in (1, 2):
        app.entered.clear()
        task = asyncio.create_task(request(protected))
        await app.entered.wait()
        await cancel(task)
        assert app.runs == runs


@pytest.mark.anyio
async def test_a_handler_that_is_cut_off_is_not_run_again_where_it_may_not(ledger: Ledger) -> None:
    app = Waiting()
    protected = IdempotencyMiddleware(
        app, ledger=ledger, in_flight="attach", takeover="refuse", attach_timeout=SOON
    )
    task = asyncio.create_task(request(protected))
    await app.entered.wait()
    await cancel(task)
    start, _ = await request(protected)
    assert (start["status"], app.runs) == (409, 1)
    decision = await ledger.abegin(operation(takeover="refuse", fingerprint=bytes(16)))
    assert not isinstance(decision, Proceed)


@pytest.mark.anyio
async def test_a_caller_that_attached_and_left_does_not_disturb_the_others(ledger: Ledger) -> None:
    claim = await hold(ledger, "k")
    attached = [asyncio.create_task(ledger.abegin(operation(), wait=SOON)) for _ in range(3)]
    await turn(TURNS)
    await cancel(attached[0])
    await claim.asettle(DONE)
    assert all(isinstance(each, Replay) for each in await asyncio.gather(*attached[1:]))


@pytest.mark.anyio
async def test_a_function_that_is_cut_off_follows_the_rule_of_takeovers(ledger: Ledger) -> None:
    entered = asyncio.Event()

    async def wait_forever() -> None:
        entered.set()
        await asyncio.Event().wait()

    for takeover in ("rerun", "refuse"):
        entered.clear()
        task = asyncio.create_task(ledger.aonce(takeover, wait_forever, takeover=takeover))
        await entered.wait()
        await cancel(task)
    assert await ledger.aonce("rerun", lambda: "ran", wait=SOON) == "ran"
    with pytest.raises(OutcomeUnknown):
        await ledger.aonce("refuse", lambda: "ran", takeover="refuse", wait=SOON)


def test_a_function_that_ends_its_thread_follows_the_rule_of_takeovers(ledger: Ledger) -> None:
    for takeover in ("rerun", "refuse"):
        with pytest.raises(SystemExit):
            ledger.once(takeover, sys.exit, takeover=takeover)
    assert ledger.once("rerun", lambda: "ran", wait=SOON) == "ran"
    with pytest.raises(OutcomeUnknown):
        ledger.once("refuse", lambda: "ran", takeover="refuse", wait=SOON)


class Blocked:
    """A ledger on SQLite, and another program that keeps everyone from writing to its file."""

    def __init__(self, path: Path) -> None:
        self.point: Callable[[str], None] = str
        self.ledger = oncekey.open(f"sqlite:///{path}", faults=self._reached)
        self._other = sqlite3.connect(path, isolation_level=None)
        self._other.execute("BEGIN IMMEDIATE")

    def _reached(self, point: str) -> None:
        self.point(point)

    def end(self) -> None:
        self._other.execute("COMMIT")
        self._other.close()

    def is_free(self) -> bool:
        decision = self.ledger.begin(operation(), wait=SOON)
        if isinstance(decision, Proceed):
            decision.claim.release()
        close(self.ledger)
        return isinstance(decision, Proceed)


@pytest.fixture
def blocked(tmp_path: Path) -> Blocked:
    return Blocked(tmp_path / "oncekey.db")


def leave_waiting(ledger: Ledger) -> asyncio.AbstractEventLoop:
    """A loop that is stopped for good while one of its tasks waits for a claim."""
    loop = asyncio.new_event_loop()
    # The loop says that a task was destroyed; that is what this is about.
    loop.set_exception_handler(lambda _, __: None)
    task = loop.create_task(ledger.abegin(operation()))
    loop.run_until_complete(asyncio.sleep(0))
    assert not task.done()
    return loop


def test_a_claim_is_given_back_when_its_loop_was_closed_before(blocked: Blocked) -> None:
    leave_waiting(blocked.ledger).close()
    blocked.end()
    assert blocked.is_free()


def test_a_claim_is_given_back_when_its_loop_is_closed_before_it_runs(blocked: Blocked) -> None:
    loop = leave_waiting(blocked.ledger)
    blocked.end()
    # Requests are answered in their order: when this one is, the claim is on its way to the loop.
    assert blocked.ledger.peek(operation("other").ref) is None
    loop.close()
    assert blocked.is_free()


class Interrupted(Exception):
    """As a worker's time limit raises it, in the middle of whatever runs."""


def test_a_thread_that_is_interrupted_leaves_no_claim(blocked: Blocked) -> None:
    waiting, done = threading.get_ident(), threading.Event()

    def raise_it(*_: object) -> None:
        done.set()
        raise Interrupted

    def interrupt(point: str) -> None:
        blocked.point = str
        # Again and again: a signal that comes just before the wait is only seen after it.
        while not done.wait(0.01):
            signal.pthread_kill(waiting, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, raise_it)
    blocked.point = interrupt
    try:
        with pytest.raises(Interrupted):
            blocked.ledger.begin(operation())
    finally:
        signal.signal(signal.SIGUSR1, before)
    blocked.end()
    assert blocked.is_free()


@pytest.mark.anyio
async def test_unknown_stays_unknown_when_the_one_who_asks_is_cancelled(ledger: Ledger) -> None:
    dead = await ledger.abegin(operation(takeover="refuse"))
    assert isinstance(dead, Proceed)
    dead.claim.abandon()
    task = asyncio.create_task(ledger.abegin(operation(takeover="refuse")))
    await turn(1)
    await cancel(task)
    assert isinstance(await ledger.abegin(operation(takeover="refuse")), Unknown | Busy)
