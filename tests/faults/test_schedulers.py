"""Schedulers side by side on one ledger, and killed between a tick's effect and what is noted."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import oncekey
from oncekey.core.waiting import ThreadWaiter
from oncekey.core.work import ListExecutions
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.processes import Process, Start
from tests.fixtures.receiver import Receiver
from tests.fixtures.schedulers import scheduling
from tests.fixtures.stores import sqlite_url, until

# On PostgreSQL a death is seen by silence.
LEASE = {"lease": 2.0, "heartbeat": 0.5}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield sqlite_url(tmp_path)
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        yield new_schema(server.url())


def running(start: Start, url: str, receiver: Receiver | None, **options: object) -> Process:
    address = None if receiver is None else receiver.url
    process = start(scheduling, url, address, {**LEASE, **options})
    assert process.hear() == "running"
    return process


def ticks_of(receiver: Receiver) -> list[int]:
    return [each.body["tick"] for each in receiver.deliveries]


def stop(processes: list[Process]) -> None:
    for each in processes:
        each.tell("stop")
    assert [each.join() for each in processes] == [0] * len(processes)


def test_of_three_schedulers_one_dispatches_each_tick(
    start: Start, url: str, receiver: Receiver
) -> None:
    processes = [running(start, url, receiver) for _ in range(3)]
    until(lambda: len(receiver.deliveries) >= 4)
    stop(processes)
    ticks = ticks_of(receiver)
    assert ticks == list(range(ticks[0], ticks[0] + len(ticks) * 1000, 1000))


@pytest.mark.parametrize(
    "point, deliveries, witness",
    [
        # It was delivered, and nobody knows: it is delivered once more, under the same key.
        ("before-settle", 2, "restarted"),
        ("before-settle", 2, "survivor"),
        # That it was delivered is known, and only the schedule has not moved on.
        ("after-settle", 1, "restarted"),
    ],
)
def test_a_tick_whose_scheduler_was_killed_behind_it_has_one_effect(
    start: Start, url: str, receiver: Receiver, point: str, deliveries: int, witness: str
) -> None:
    doomed = running(start, url, receiver, dies_at=point)
    if witness == "survivor":
        # Whoever is first at a tick has it; they race for as long as the doomed one lives.
        others = [running(start, url, receiver)]
        assert doomed.join() == -9
    else:
        assert doomed.join() == -9
        others = [running(start, url, receiver)]
    last = max(ticks_of(receiver))
    until(lambda: max(ticks_of(receiver)) >= last + 2000)
    stop(others)

    counted = Counter(ticks_of(receiver))
    first = min(counted)
    assert sorted(counted) == list(range(first, first + len(counted) * 1000, 1000))
    assert max(counted.values()) == deliveries
    assert sum(counted.values()) == len(counted) + deliveries - 1
    assert set(receiver.effects.values()) == {1}
    for tick, count in counted.items():
        bodies = [each.body for each in receiver.deliveries if each.body["tick"] == tick]
        assert bodies == bodies[:1] * count


def test_schedulers_that_are_killed_all_the_time_leave_no_tick_out(
    start: Start, url: str, receiver: Receiver
) -> None:
    steady, kills = running(start, url, receiver), 3
    for _ in range(kills):
        doomed = running(start, url, receiver)
        seen = len(receiver.deliveries)
        until(lambda seen=seen: len(receiver.deliveries) > seen)
        doomed.kill()
    last = max(ticks_of(receiver))
    until(lambda: max(ticks_of(receiver)) > last)
    stop([steady])
    counted = Counter(ticks_of(receiver))
    first = min(counted)
    assert sorted(counted) == list(range(first, first + len(counted) * 1000, 1000))
    # One that was killed while it was heard may be heard of again; nobody else is.
    assert sum(counted.values()) - len(counted) <= kills


def keys_of(url: str) -> list[str]:
    """Of the workflows that were started, oldest tick first."""
    waiter, ledger = ThreadWaiter(), oncekey.open(url)
    ledger.store.submit(ListExecutions("default", limit=1000), waiter)
    found = waiter.wait()
    ledger.close()
    return sorted(each.key for each in found)


def test_a_workflow_is_started_once_though_its_scheduler_was_killed_behind_it(
    start: Start, url: str
) -> None:
    survivor = running(start, url, None)
    doomed = running(start, url, None, dies_at="before-settle")
    assert doomed.join() == -9
    seen = len(keys_of(url))
    until(lambda: len(keys_of(url)) >= seen + 2)
    stop([survivor])
    keys = keys_of(url)
    first = int(keys[0].rpartition(":")[2])
    assert keys == [f"sched:often:{first + n * 1000}" for n in range(len(keys))]
