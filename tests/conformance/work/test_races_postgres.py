"""Durable work on PostgreSQL, by several at once: whoever is first, everybody agrees on it."""

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from oncekey.core.answers import (
    Advanced,
    AlreadySettled,
    Awaited,
    Controlled,
    Existing,
    KeyTaken,
    Parked,
    RequestKeyReused,
    Settled,
    Started,
)
from oncekey.core.execution import PromiseKind, PromiseState, Status
from oncekey.core.ports import Peek
from oncekey.core.work import Control, Know, ListExecutions, Withdraw
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.stores import Place
from tests.fixtures.work import FAILURE, Worker, entry, ref_of, succeeded

pytestmark = pytest.mark.postgres
ROUNDS = 40


@pytest.fixture
def place(postgres: PostgresServer) -> Iterator[Place]:
    opened = Place(new_schema(postgres.url()))
    yield opened
    opened.close()


@pytest.fixture
def workers(place: Place) -> list[Worker]:
    """Processes on one database."""
    return [Worker(place.open()) for _ in range(3)]


def at_once(*asking: Callable[[], Any]) -> list[Any]:
    """Call all from threads that begin at the same moment."""
    ready = threading.Barrier(len(asking))

    def begin(ask: Callable[[], Any]) -> Any:
        ready.wait()
        return ask()

    with ThreadPoolExecutor(len(asking)) as threads:
        return list(threads.map(begin, asking))


def all_at_once(pairs: list[tuple[Worker, Any]]) -> list[Any]:
    return at_once(*(lambda worker=worker, request=request: worker.ask(request)
                     for worker, request in pairs))  # fmt: skip


# -- one key ---------------------------------------------------------------------------------------


def test_one_key_starts_one_execution(workers: list[Worker]) -> None:
    for number in range(ROUNDS):
        requests = [(worker, worker.starting(key=f"k-{number}")) for worker in workers]

        answers = all_at_once(requests)

        started = [
            request.execution.id
            for (_, request), answer in zip(requests, answers, strict=True)
            if isinstance(answer, Started)
        ]
        existing = [answer for answer in answers if isinstance(answer, Existing)]
        assert (len(started), len(existing)) == (1, len(workers) - 1)
        assert {answer.execution.id for answer in existing if answer.execution} == {*started}
    assert len(workers[0].ask(ListExecutions("acme", limit=1000))) == ROUNDS


def test_groups_that_share_keys_do_not_wait_in_a_circle(workers: list[Worker]) -> None:
    keys = [f"k-{number}" for number in range(60)]
    groups = [
        [worker.starting(key=key) for key in keys[::step]]
        for worker, step in zip(workers, (1, -1, 1), strict=True)
    ]

    answers = at_once(
        *(
            lambda worker=worker, group=group: worker.caller.ask_all(group)
            for worker, group in zip(workers, groups, strict=True)
        )
    )

    kinds = [type(answer) for each in answers for answer in each]
    assert (kinds.count(Started), kinds.count(Existing)) == (60, 120)


def test_a_key_past_its_time_is_used_anew_once(workers: list[Worker], place: Place) -> None:
    for number in range(ROUNDS):
        old = workers[0].start(key=f"k-{number}")
        workers[0].advance(old, ending=succeeded(keyed=True, plain=True)._replace(keep=1))
        place.clock.advance(1)

        answers = all_at_once([(each, each.starting(key=f"k-{number}")) for each in workers])

        assert sum(isinstance(answer, Started) for answer in answers) == 1
        assert {type(answer) for answer in answers} == {Started, Existing}


def test_one_key_belongs_to_one_promise(workers: list[Worker]) -> None:
    for number in range(ROUNDS):
        requests = [(worker, worker.making(key=f"k-{number}")) for worker in workers]

        answers = all_at_once(requests)

        made = [answer.promise.id for answer in answers if isinstance(answer, Awaited)]
        taken = [answer.promise.id for answer in answers if isinstance(answer, KeyTaken)]
        assert len(made) == 1
        assert taken == made * (len(workers) - 1)


def test_executions_that_want_one_key_get_it_once(workers: list[Worker]) -> None:
    for number in range(ROUNDS):
        waits = [(each, each.awaiting(each.start(), key=f"k-{number}")) for each in workers]

        answers = all_at_once(waits)

        kinds = [type(answer) for answer in answers]
        assert (kinds.count(Awaited), kinds.count(KeyTaken)) == (1, len(workers) - 1)


# -- a resolution and its promise ------------------------------------------------------------------


@pytest.mark.parametrize("in_workflow", [True, False])
def test_a_resolution_that_comes_as_its_promise_is_made_is_not_lost(
    workers: list[Worker], in_workflow: bool
) -> None:
    maker, resolver, _ = workers
    kinds = set()
    for number in range(3 * ROUNDS):
        key = f"k-{number}"
        making = maker.awaiting(maker.start(), key=key) if in_workflow else maker.making(key=key)
        resolving = resolver.resolving(resolver.target(key), park=key, request_key=f"r-{key}")

        made, answer = all_at_once([(maker, making), (resolver, resolving)])

        kinds.add(type(answer))
        promise = maker.promise(id=made.promise.id)
        assert promise is not None
        assert (promise.state, promise.body) == (PromiseState.RESOLVED, b'"paid"')
        again = resolver.resolve(resolver.target(key), park=key, request_key=f"r-{key}")
        assert again == AlreadySettled(promise, again=True, key_new=False)
    assert kinds <= {Parked, Settled}


def test_one_of_many_resolutions_wins(workers: list[Worker]) -> None:
    for number in range(ROUNDS):
        promise = workers[0].make().promise
        requests = [
            (each, each.resolving(each.target(id=promise.id), b'"%d"' % place,
                                  request_key=f"r-{number}-{place}"))
            for place, each in enumerate(workers * 2)
        ]  # fmt: skip

        answers = all_at_once(requests)

        (won,) = [answer for answer in answers if isinstance(answer, Settled)]
        late = [answer for answer in answers if isinstance(answer, AlreadySettled)]
        assert len(late) == len(requests) - 1
        assert {answer.promise for answer in late} == {won.promise}


def test_a_request_key_is_used_for_one_promise(workers: list[Worker]) -> None:
    for number in range(ROUNDS):
        promises = [workers[0].make().promise for _ in workers]
        requests = [
            (each, each.resolving(each.target(id=promise.id), request_key=f"r-{number}"))
            for each, promise in zip(workers, promises, strict=True)
        ]

        kinds = [type(answer) for answer in all_at_once(requests)]

        assert (kinds.count(Settled), kinds.count(RequestKeyReused)) == (1, len(workers) - 1)


def test_whoever_lies_down_is_woken_by_what_comes_at_that_moment(workers: list[Worker]) -> None:
    runner, resolver, _ = workers
    for _ in range(2 * ROUNDS):
        execution = runner.start()
        runner.wait(execution)
        target = resolver.target(execution=execution.id, name="payment")

        lying, settled = all_at_once(
            [(runner, runner.advancing(execution, waits=0)), (resolver, resolver.resolving(target))]
        )

        found = runner.execution(execution.id)
        assert settled.woken is not None
        if lying.woken:
            assert (found.status, settled.woken.ready) == (Status.RUNNING, False)
        else:
            assert (found.status, settled.woken.ready) == (Status.READY, True)
        assert len(runner.journal(execution.id)) == 1


# -- callers and the called ------------------------------------------------------------------------


def test_who_calls_is_told_of_an_end_that_comes_at_that_moment(workers: list[Worker]) -> None:
    first, second, _ = workers
    for number in range(2 * ROUNDS):
        child = first.start("child", key=f"k-{number}")
        parent = second.start()
        calling = second.awaiting(
            parent, 0, "child", PromiseKind.CALL, start=second.starting("child", key=f"k-{number}")
        )
        ending = first.advancing(child, ending=succeeded(b'"child"', keyed=True, plain=True))

        called, ended = all_at_once([(second, calling), (first, ending)])

        assert called.child.execution.id == child.id
        assert type(ended) is Advanced
        (told,) = second.journal(parent.id)
        assert told.body == b'"child"'
        assert first.execution(child.id).status is Status.SUCCEEDED


def test_who_calls_twice_does_not_wait_in_a_circle_with_the_end(workers: list[Worker]) -> None:
    """The parent holds itself and wants its child; the child holds itself and wants its parent."""
    first, second, _ = workers
    for number in range(ROUNDS):
        child, parent = first.start("child", key=f"k-{number}"), second.start()
        calls = [
            second.awaiting(
                parent, seq, "child", PromiseKind.CALL,
                start=second.starting("child", key=f"k-{number}"),
            )
            for seq in (0, 1)
        ]  # fmt: skip
        second.ask(calls[0])

        called, ended = all_at_once(
            [(second, calls[1]), (first, first.advancing(child, ending=succeeded(plain=True)))]
        )

        assert isinstance(called, Awaited)
        assert isinstance(ended, Advanced)
        assert [each.seq for each in second.journal(parent.id)] == [0, 1]


# -- control ---------------------------------------------------------------------------------------


def test_a_request_key_controls_one_execution(workers: list[Worker]) -> None:
    for number in range(ROUNDS):
        executions = [each.start() for each in workers]

        answers = all_at_once(
            [
                (each, Control("acme", f"c-{number}", "cancel", execution.id, 5, failure=FAILURE))
                for each, execution in zip(workers, executions, strict=True)
            ]
        )

        assert sorted(answer.verdict for answer in answers) == ["done", "other", "other"]
        statuses = [workers[0].execution(each.id).status for each in executions]
        assert statuses.count(Status.CANCELLED) == 1


def test_a_request_key_asked_for_at_once_has_one_effect(workers: list[Worker]) -> None:
    for number in range(ROUNDS):
        execution = workers[0].start()
        requests = [
            (each, Control("acme", f"c-{number}", "fork", execution.id, 5, from_step=1,
                           fork=each.draw()))
            for each in workers
        ]  # fmt: skip

        answers: list[Controlled] = all_at_once(requests)

        assert sorted(answer.verdict for answer in answers) == ["done", "replayed", "replayed"]
        assert len({answer.answer for answer in answers}) == 1


def test_an_end_and_a_cancellation_at_once_are_one_of_them(workers: list[Worker]) -> None:
    runner, canceller, _ = workers
    for number in range(ROUNDS):
        execution = runner.start(key=f"k-{number}")
        control = Control("acme", f"c-{number}", "cancel", execution.id, 5, failure=FAILURE)
        ending = succeeded(keyed=True, plain=True)

        ended, controlled = all_at_once(
            [(runner, runner.advancing(execution, entry(0), ending=ending)), (canceller, control)]
        )

        found = runner.execution(execution.id)
        record = runner.ask(Peek(ref_of("acme", "start", f"k-{number}").digest)).record
        assert record.outcome.body == found.result
        if isinstance(ended, Advanced):
            assert (found.status, controlled.verdict) == (Status.SUCCEEDED, "failed")
        else:
            assert (found.status, controlled.verdict) == (Status.CANCELLED, "done")
            assert runner.journal(execution.id) == []


def test_a_start_that_is_undone_as_it_goes_on_is_one_of_both(workers: list[Worker]) -> None:
    runner = workers[0]
    for _ in range(2 * ROUNDS):
        execution = runner.start()

        undone, advanced = at_once(
            lambda each=execution: runner.ask(Withdraw(each.id)),
            lambda each=execution: runner.advance(each, entry(0)),
        )

        assert undone is not isinstance(advanced, Advanced)
        assert len(runner.journal(execution.id)) == int(not undone)


def test_processes_that_start_together_make_their_names_known(workers: list[Worker]) -> None:
    names = tuple((0, f"n-{number}") for number in range(20))
    for _ in range(ROUNDS):
        answers = all_at_once(
            [
                (workers[0], Know(names, 5)),  # type: ignore[arg-type]
                (workers[1], Know(names[::-1], 5)),  # type: ignore[arg-type]
            ]
        )
        assert answers == [True, True]


def test_a_run_taken_over_in_the_middle_of_a_crowd_writes_nothing(workers: list[Worker]) -> None:
    """Picked up again and again by all, each run advances only while the execution is its own."""
    execution = workers[0].start(status=Status.READY)
    numbers = itertools.count()
    written: list[int] = []

    def run(worker: Worker) -> None:
        for _ in range(ROUNDS):
            for picked in worker.pick_up():
                seq = next(numbers)
                if worker.advance(picked.execution, entry(seq)) == Advanced():
                    written.append(seq)
                held = picked.execution
                worker.caller.store.transact(
                    lambda run, held=held: run("hand_back", {"id": held.id, "fence": held.fence}),
                    write=True,
                )

    at_once(*(lambda worker=worker: run(worker) for worker in workers))

    journal = [each.seq for each in workers[0].journal(execution.id)]
    assert sorted(journal) == sorted(written)
    assert workers[0].execution(execution.id).fence == len(written) + 1
