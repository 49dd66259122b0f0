"""Durable work on Restate, where objects keep the time and nobody has to look after it."""

import itertools
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from oncekey.compose.ledger import store_of
from oncekey.core.answers import Advanced, Awaited, Controlled, Existing, KeyTaken, Started
from oncekey.core.clock import SystemClock
from oncekey.core.execution import PromiseKind, PromiseState, Status
from oncekey.core.model import State
from oncekey.core.ports import Gone, Peek
from oncekey.core.work import FindExecution, Load
from oncekey.durable.embedded import timers
from oncekey.stores.restate import failures
from tests.fixtures.quiet import settle_down
from tests.fixtures.stores import Caller, until
from tests.fixtures.work import PAUSED, Worker, entry, failed, ref_of, succeeded

pytestmark = pytest.mark.restate

SOON = 150


class Now(SystemClock):
    """Wall time, which a test cannot move."""

    def advance(self, milliseconds: int) -> None:
        raise AssertionError("time passes by itself")


@pytest.fixture
def worker(restate_url: str) -> Iterator[Worker]:
    clock: Any = Now()
    store = store_of(restate_url, clock)
    store.open(lambda _: 0)
    yield Worker(Caller(store, clock, itertools.count(clock.now() << 21)))
    store.close()


def at_once(worker: Worker, requests: list[Any]) -> list[Any]:
    return worker.caller.ask_all(requests)


# -- time --------------------------------------------------------------------------------------


def test_what_is_late_fails_as_it_does_in_a_database() -> None:
    assert (failures.LATE, failures.OVERDUE) == (timers._LATE, timers._OVERDUE)


def test_a_sleep_ends_by_itself_and_never_early(worker: Worker) -> None:
    execution, now = worker.start(), worker.clock.now()
    advance = worker.advancing(execution, waits=0)
    kind = PromiseKind.SLEEP
    answer = worker.wait(execution, 2, "sleep", kind, due_at=now + SOON, advance=advance)
    assert answer.waits

    until(lambda: worker.execution(execution.id).status is Status.READY)

    assert worker.clock.now() >= now + SOON
    [told] = worker.journal(execution.id)
    assert (told.seq, told.failed, told.at) == (2, False, now + SOON)


def test_promises_that_are_not_settled_in_time_fail_by_themselves(worker: Worker) -> None:
    execution, due_at = worker.start(), worker.clock.now() + SOON
    first = worker.wait(execution, 0, "a", due_at=due_at).promise
    second = worker.wait(execution, 1, "b", PromiseKind.EVENT, topic="t", due_at=due_at + 5).promise
    alone = worker.make("c", due_at=due_at).promise

    def states() -> list[PromiseState]:
        found = [
            worker.promise(execution=execution.id, name="a"),
            worker.promise(id=second.id),
            worker.promise(id=alone.id),
        ]
        return [each.state for each in found if each is not None]

    until(lambda: states() == [PromiseState.TIMED_OUT] * 3)

    assert [each.body for each in worker.journal(execution.id)] == [failures.LATE] * 2
    found = worker.promise(id=first.id)
    assert found is not None
    assert found.settled_at == due_at


def test_what_was_settled_in_time_stays_so(worker: Worker) -> None:
    execution, due_at = worker.start(), worker.clock.now() + SOON
    worker.wait(execution, 0, "a", due_at=due_at)
    later = worker.wait(execution, 1, "sleep", PromiseKind.SLEEP, due_at=due_at + 100).promise
    worker.resolve(worker.target(execution=execution.id, name="a"), b"1")

    until(lambda: len(worker.journal(execution.id)) == 2)

    assert [each.body for each in worker.journal(execution.id)] == [b"1", b"null"]
    found = worker.promise(id=later.id)
    assert found is not None
    assert found.settled_at == due_at + 100


def test_an_execution_that_is_not_over_in_time_fails_by_itself(worker: Worker) -> None:
    parent, due_at = worker.start(), worker.clock.now() + SOON
    start = worker.starting("child", "k", due_at=due_at, status=Status.READY)
    worker.wait(parent, 0, "child", PromiseKind.CALL, start=start)

    until(lambda: worker.journal(parent.id))

    child = worker.execution(start.execution.id)
    assert (child.status, child.result, child.fence) == (Status.FAILED, failures.OVERDUE, 2)
    [told] = worker.journal(parent.id)
    assert (told.failed, told.body) == (True, failures.OVERDUE)
    digest = ref_of("acme", "start", "k").digest
    until(lambda: worker.ask(Peek(digest)).record.state is State.FAILED)


def test_what_is_over_is_forgotten_by_itself(worker: Worker) -> None:
    execution = worker.start()
    token = b"t" * 32
    worker.wait(execution, 1, token=token)
    worker.advance(execution, entry(0), ending=succeeded()._replace(keep=SOON))

    until(lambda: worker.ask(FindExecution(None, execution.id)) is None)

    assert worker.journal(execution.id) == []
    until(lambda: worker.promise(token=token) is None)


def test_what_was_parked_is_forgotten_by_itself(worker: Worker) -> None:
    worker.resolve(worker.target("k"), b"1", park="k", park_kept=SOON)
    parked = worker.resolve(worker.target("k"), b"2", park="k").expires_at
    until(lambda: worker.resolve(worker.target("k"), b"2", park="k").expires_at > parked)
    assert worker.pending("k").body == b"2"


def test_the_key_of_a_promise_ends_by_itself(worker: Worker) -> None:
    promise = worker.make("p", "k", kept=SOON).promise
    until(lambda: worker.ask(Peek(ref_of("acme", "promise", "k").digest)) is None)
    until(lambda: worker.current(promise).key is None)


# -- races -------------------------------------------------------------------------------------


def test_a_key_starts_one_execution_however_many_ask_at_once(worker: Worker) -> None:
    requests = [worker.starting(key="k", status=Status.READY) for _ in range(20)]

    answers = at_once(worker, requests)

    started = [r for r, a in zip(requests, answers, strict=True) if isinstance(a, Started)]
    assert len(started) == 1
    others = [answer for answer in answers if not isinstance(answer, Started)]
    assert {type(answer) for answer in others} == {Existing}
    assert {answer.execution.id for answer in others} == {started[0].execution.id}
    there = [worker.ask(FindExecution(None, each.execution.id)) for each in requests]
    assert [each.id for each in there if each is not None] == [started[0].execution.id]


def test_a_key_that_is_given_back_is_good_at_once(worker: Worker) -> None:
    for _ in range(10):
        execution = worker.start("order", "k", frees_key=True)
        worker.advance(execution, ending=failed(keyed=True))


def test_a_start_finds_what_has_just_ended_as_it_ended(worker: Worker) -> None:
    for number in range(10):
        key = f"k-{number}"
        execution = worker.start("order", key)
        worker.advance(execution, ending=succeeded(b'"here"', keyed=True))
        again = worker.ask(worker.starting("order", key))
        assert isinstance(again, Existing)
        assert again.record.outcome is not None
        assert again.record.outcome.body == b'"here"'


def test_a_key_is_one_promises_however_many_ask_at_once(worker: Worker) -> None:
    executions = [worker.start() for _ in range(12)]
    waits = [
        worker.awaiting(each, 0, key="k", advance=worker.advancing(each, waits=0))
        for each in executions
    ]

    answers = at_once(worker, waits)

    [won] = [answer for answer in answers if isinstance(answer, Awaited)]
    taken = [answer for answer in answers if isinstance(answer, KeyTaken)]
    assert len(taken) == len(answers) - 1
    assert {answer.promise.id for answer in taken} == {won.promise.id}
    for execution, answer in zip(executions, answers, strict=True):
        expected = Status.WAITING if answer is won else Status.RUNNING
        assert worker.execution(execution.id).status is expected
        assert len(worker.promises_of(execution)) == (1 if answer is won else 0)


def test_a_resolution_finds_its_promise_whichever_comes_first(worker: Worker) -> None:
    executions = [worker.start() for _ in range(20)]
    requests: list[Any] = []
    for number, each in enumerate(executions):
        key = f"k-{number}"
        advance = worker.advancing(each, waits=0)
        wait = worker.awaiting(each, 0, key=key, advance=advance)
        resolve = worker.resolving(worker.target(key), b"5", request_key=f"r-{number}", park=key)
        requests += [wait, resolve] if number % 2 else [resolve, wait]

    at_once(worker, requests)

    for each in executions:
        assert [told.body for told in worker.journal(each.id)] == [b"5"]
        status = worker.execution(each.id).status
        assert status in {Status.RUNNING, Status.READY}


def test_one_of_many_resolutions_counts(worker: Worker) -> None:
    execution = worker.start()
    worker.wait(execution, key="k")
    target = worker.target("k")
    requests = [
        worker.resolving(target, str(number).encode(), request_key=f"r-{number}")
        for number in range(12)
    ]

    answers = at_once(worker, requests)

    [won] = [answer for answer in answers if hasattr(answer, "woken")]
    assert {answer.promise for answer in answers} == {won.promise}
    [told] = worker.journal(execution.id)
    assert told.body == won.promise.body
    assert worker.execution(execution.id).wakes == 1


def test_a_child_that_ends_at_once_is_told_of(worker: Worker) -> None:
    parents = [worker.start() for _ in range(8)]
    child = worker.start("child", "c")
    calls: list[Any] = [
        worker.awaiting(
            each,
            0,
            "child",
            PromiseKind.CALL,
            start=worker.starting("child", "c"),
            advance=worker.advancing(each, waits=0),
        )
        for each in parents
    ]
    calls.insert(4, worker.advancing(child, ending=succeeded(b"7", keyed=True)))

    at_once(worker, calls)
    settle_down(worker.caller.store)

    for each in parents:
        assert [told.body for told in worker.journal(each.id)] == [b"7"]


@pytest.mark.parametrize("action", ["cancel", "resume", "fork"])
def test_a_control_key_acts_once_however_many_ask_at_once(worker: Worker, action: Any) -> None:
    execution = worker.start()
    worker.advance(execution, entry(0), ending=PAUSED)
    numbers = [worker.draw() for _ in range(6)]

    def ask(number: int) -> Any:
        return worker.control(action, execution, fork=number, from_step=1)

    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(ask, numbers))

    verdicts = sorted(answer.verdict for answer in answers)
    assert verdicts == ["done"] + ["replayed"] * 5
    assert len({answer.answer for answer in answers}) == 1
    made = [number for number in numbers if worker.ask(FindExecution(None, number)) is not None]
    assert len(made) == (1 if action == "fork" else 0)
    again = worker.control(action, execution, fork=worker.draw(), from_step=1)
    assert again == Controlled("replayed", answers[0].answer)
    assert json.loads(again.answer)["workflow_id"].startswith("wf_")


def test_a_child_whose_number_is_another_execution_is_drawn_anew(worker: Worker) -> None:
    parent, other = worker.start(), worker.start("other")
    start = worker.starting("child", id=other.id)

    answer = worker.wait(parent, 0, "child", PromiseKind.CALL, start=start)

    assert answer == Gone()
    assert worker.promises_of(parent) == []
    again = worker.wait(parent, 0, "child", PromiseKind.CALL, start=worker.starting("child"))
    assert isinstance(again, Awaited)
    assert worker.execution(other.id) == other


# -- much ------------------------------------------------------------------------------------------


def test_two_thousand_steps(worker: Worker) -> None:
    execution = worker.start()
    body = b"7" * 700
    for first in range(0, 2000, 4):
        steps = [entry(first + place, body=body, at=first) for place in range(4)]
        assert worker.advance(execution, *steps) == Advanced()
    assert worker.advance(execution, entry(1999, body=b"other")) == Advanced()

    loaded = worker.ask(Load(execution.id, 1))

    assert [each.seq for each in loaded.entries] == list(range(2000))
    assert {each.body for each in loaded.entries} == {body}
    assert worker.wait(execution, 5000, key="k").promise.seq == 5000
    assert worker.advance(execution, ending=succeeded()) == Advanced()
