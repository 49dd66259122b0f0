"""What only PostgreSQL can do to durable work: row locks, open transactions, buried owners."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest

from oncekey.core.answers import Advanced, Started
from oncekey.core.errors import StoreUnavailable
from oncekey.core.execution import Execution, PromiseKind, Status
from oncekey.core.ports import Peek
from oncekey.core.waiting import ThreadWaiter
from oncekey.core.work import Advance
from oncekey.stores.queries import load
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.stores import Place, until
from tests.fixtures.work import Worker, entry, ref_of, succeeded

pytestmark = pytest.mark.postgres
QUERIES = load("postgres")
Connection = psycopg.Connection[Any]


@pytest.fixture
def place(postgres: PostgresServer) -> Iterator[Place]:
    opened = Place(new_schema(postgres.url()))
    yield opened
    opened.close()


@pytest.fixture
def other(worker: Worker, place: Place) -> Iterator[Connection]:
    """Somebody else's connection, with a transaction that stays open."""
    with psycopg.connect(place.url) as connection:
        yield connection


# -- somebody's transaction that stays open --------------------------------------------------------


def lock(other: Connection, execution: Execution) -> None:
    other.execute(QUERIES["lock_execution"], {"id": execution.id})


def submit_all(worker: Worker, requests: list[Any]) -> list[ThreadWaiter]:
    waiters = [ThreadWaiter() for _ in requests]
    for request, waiter in zip(requests, waiters, strict=True):
        worker.caller.store.submit(request, waiter)
    return waiters


def test_an_execution_that_is_locked_stops_nobody_else(worker: Worker, other: Connection) -> None:
    locked, free = worker.start(), worker.start()
    lock(other, locked)
    requests = [
        worker.advancing(locked, entry(0)),
        worker.advancing(free, entry(0), ending=succeeded(plain=True)),
        worker.starting(key="new"),
        worker.caller.insert("claim"),
    ]

    answers = [waiter.wait() for waiter in submit_all(worker, requests)]
    other.rollback()

    assert isinstance(answers[0], StoreUnavailable)
    assert answers[1] == Advanced()
    assert isinstance(answers[2], Started)
    assert worker.execution(free.id).status is Status.SUCCEEDED
    assert worker.ask(requests[0]) == Advanced()


def test_a_line_is_good_after_something_on_it_was_blocked(
    worker: Worker, other: Connection
) -> None:
    locked = worker.start()
    lock(other, locked)
    late = worker.advancing(locked, entry(0))

    with closing(worker.caller.store._session()) as session:
        for _ in range(2):
            assert isinstance(session.commit([late])[0], StoreUnavailable)
            assert session.commit([worker.caller.insert("claim")]) != []
            assert isinstance(session.commit([worker.starting()])[0], Started)
    other.rollback()


@pytest.mark.parametrize("committed", [True, False])
def test_what_is_locked_for_a_moment_is_waited_for(
    worker: Worker, other: Connection, committed: bool
) -> None:
    execution = worker.start()
    lock(other, execution)
    other.execute(QUERIES["end_execution"], {
        "id": execution.id, "status": 5, "result": b"null", "completed_at": 1, "expires_at": 2,
        "bump": 1,
    })  # fmt: skip

    (waiter,) = submit_all(worker, [worker.advancing(execution, entry(0))])
    wait_until_blocked(other)
    other.commit() if committed else other.rollback()

    assert isinstance(waiter.wait(), Advanced) is not committed
    assert len(worker.journal(execution.id)) == int(not committed)


def wait_until_blocked(other: Connection) -> None:
    waiting = "SELECT 1 FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"
    until(lambda: other.execute(waiting, (other.info.backend_pid,)).fetchone())


def test_an_ending_whose_key_is_locked_is_left_out_whole(worker: Worker, other: Connection) -> None:
    locked, free = worker.start(key="locked"), worker.start(key="free")
    other.execute(QUERIES["lock_claim"], {"id": locked.id})
    endings = [
        worker.advancing(each, entry(0), ending=succeeded(keyed=True, plain=True))
        for each in (locked, free)
    ]

    with closing(worker.caller.store._session()) as session, ThreadPoolExecutor() as threads:
        group = threads.submit(session.commit, endings)
        wait_until_blocked(other)
        # The rest of the group is written; of the one that waits, nothing is.
        found = [worker.execution(each.id).status for each in (locked, free)]
        journals = [len(worker.journal(each.id)) for each in (locked, free)]
        other.rollback()

    assert group.result() == [Advanced(), Advanced()]
    assert (found, journals) == ([Status.RUNNING, Status.SUCCEEDED], [0, 1])
    for each in ("locked", "free"):
        assert worker.ask(Peek(ref_of("acme", "start", each).digest)).record.outcome is not None


def test_a_due_promise_whose_execution_is_locked_is_left_for_the_next_time(
    worker: Worker, other: Connection
) -> None:
    executions = [worker.start(), worker.start()]
    for each in executions:
        worker.wait(each, 0, "nap", PromiseKind.SLEEP, due_at=worker.clock.now())
    lock(other, executions[0])

    first = worker.due()
    other.rollback()
    second = worker.due()

    assert [woken.execution for woken in first.woken] == [executions[1].id]
    assert [woken.execution for woken in second.woken] == [executions[0].id]


def test_what_is_locked_is_not_picked_up(worker: Worker, other: Connection) -> None:
    ready = [worker.start(status=Status.READY) for _ in range(2)]
    lock(other, ready[0])

    first = worker.pick_up()
    other.rollback()

    assert [each.execution.id for each in first] == [ready[1].id]
    assert [each.execution.id for each in worker.pick_up()] == [ready[0].id]


# -- owners ----------------------------------------------------------------------------------------


def test_an_owner_that_was_buried_starts_under_its_new_name(
    worker: Worker, other: Connection
) -> None:
    dead = worker.caller.store.owner
    other.execute("DELETE FROM oncekey_owners")
    other.commit()

    started = worker.caller.ask_all([worker.starting() for _ in range(5)])

    alive = worker.caller.store.owner
    assert alive != dead
    assert started == [Started(alive)] * 5
    assert worker.pick_up() == []


@pytest.mark.parametrize("way", ["start", "pick-up"])
def test_nothing_runs_under_a_stale_heartbeat(place: Place, way: str) -> None:
    worker = Worker(place.open(heartbeat=600.0))
    worker.start(status=Status.READY)
    place.execute("UPDATE oncekey_owners SET heartbeat_at = 1")

    if way == "start":
        worker.start()
    else:
        assert len(worker.pick_up()) == 1

    with psycopg.connect(place.url) as connection:
        row = connection.execute("SELECT min(heartbeat_at) FROM oncekey_owners").fetchone()
    assert row is not None
    assert row[0] > 1


# -- groups of any size ----------------------------------------------------------------------------


def test_a_group_of_very_large_values_goes_in_parts(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oncekey.stores.postgres.session._LARGEST", 1000)
    executions = [worker.start(input=b"x" * 700) for _ in range(3)]
    work: list[Advance] = [
        worker.advancing(each, entry(0, body=b"y" * 700), ending=succeeded(b"z" * 700, plain=True))
        for each in executions
    ]

    assert worker.caller.ask_all([*work]) == [Advanced()] * 3

    assert {worker.execution(each.id).result for each in executions} == {b"z" * 700}
