"""What only PostgreSQL can do to a store: row locks, open transactions, owners that were buried."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest

from oncekey.core.errors import StoreUnavailable
from oncekey.core.ports import (
    Abandon,
    Found,
    Held,
    Insert,
    Peek,
    Purge,
    Release,
    Replace,
    Request,
    Take,
)
from oncekey.core.waiting import ThreadWaiter
from oncekey.stores.queries import load
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.stores import DAY, DONE, Caller, Place, until

pytestmark = pytest.mark.postgres
QUERIES = load("postgres")
Connection = psycopg.Connection[Any]


@pytest.fixture
def place(postgres: PostgresServer) -> Iterator[Place]:
    opened = Place(new_schema(postgres.url()))
    yield opened
    opened.close()


@pytest.fixture
def caller(place: Place) -> Caller:
    return place.open()


@pytest.fixture
def other(caller: Caller, place: Place) -> Iterator[Connection]:
    """Somebody else's connection, with a transaction that stays open."""
    with psycopg.connect(place.url) as connection:
        yield connection


def claim(caller: Caller, key: str, **options: int) -> Insert:
    insert = caller.insert(key, **options)
    assert caller.ask(insert) == Held(1)
    return insert


def lapsed(caller: Caller, key: str, **options: int) -> Insert:
    insert = claim(caller, key, **options)
    assert caller.ask(Abandon(insert.id, 1)) is True
    return insert


def settle_slowly(other: Connection, caller: Caller, insert: Insert) -> None:
    """The outcome is written, its commit is still to come."""
    values = {
        "id": insert.id, "fence": 1, "kind": int(DONE.kind), "status": 0, "headers": b"",
        "body": DONE.body, "completed_at": caller.clock.now(),
        "expires_at": caller.clock.now() + DAY,
    }  # fmt: skip
    assert other.execute(QUERIES["settle"], values).fetchall() == [(insert.id,)]


def submit_and_wait_for_lock(caller: Caller, other: Connection, request: Request) -> ThreadWaiter:
    """Returns when the store is waiting for the other's transaction to end."""
    waiter = ThreadWaiter()
    caller.store.submit(request, waiter)
    wait_until_blocked(other)
    return waiter


def wait_until_blocked(other: Connection) -> None:
    waiting = "SELECT 1 FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"

    def is_blocked() -> Any:
        # A transaction sees the processes that were there when it first looked.
        other.execute("SELECT pg_stat_clear_snapshot()")
        return other.execute(waiting, (other.info.backend_pid,)).fetchone()

    until(is_blocked)


# -- an outcome and a takeover at the same time -------------------------------------------------


def test_a_late_outcome_waits_for_the_takeover_and_is_refused(
    caller: Caller, other: Connection
) -> None:
    insert = lapsed(caller, "k")
    values = {"id": insert.id, "fence": 1, "owner": 99}
    other.execute(QUERIES["lock_claim"], values)
    other.execute(QUERIES["take"], values)

    waiter = submit_and_wait_for_lock(caller, other, caller.settle(insert))
    other.commit()

    assert waiter.wait() is False
    assert caller.ask(Peek(insert.digest)).record.outcome is None


def test_a_takeover_does_not_wait_for_an_outcome_and_does_not_overrun_it(
    caller: Caller, other: Connection
) -> None:
    insert = lapsed(caller, "k")
    settle_slowly(other, caller, insert)

    busy = caller.ask(Take(insert.id, insert.digest, 1))
    other.commit()

    assert isinstance(busy, Found)
    assert (busy.lapsed, busy.record.fence) == (False, 1)
    assert caller.ask(Take(insert.id, insert.digest, 1)).record.outcome == DONE


@pytest.mark.parametrize("letting_go", [Release, Abandon])
def test_letting_go_does_not_overrun_an_outcome(
    caller: Caller, other: Connection, letting_go: type[Release] | type[Abandon]
) -> None:
    insert = claim(caller, "k")
    settle_slowly(other, caller, insert)

    waiter = submit_and_wait_for_lock(caller, other, letting_go(insert.id, 1))
    other.commit()

    assert waiter.wait() is False
    assert caller.ask(Peek(insert.digest)).record.outcome == DONE


def test_making_place_does_not_overrun_an_outcome(caller: Caller, other: Connection) -> None:
    insert = lapsed(caller, "k", kept=1)
    caller.clock.advance(1)
    settle_slowly(other, caller, insert)

    replace = Replace(insert.id, 1, caller.insert("k"))
    waiter = submit_and_wait_for_lock(caller, other, replace)
    other.commit()

    assert waiter.wait().record.outcome == DONE


def test_a_purge_takes_an_outcome_that_is_being_written(caller: Caller, other: Connection) -> None:
    insert = claim(caller, "k")
    settle_slowly(other, caller, insert)

    waiter = submit_and_wait_for_lock(caller, other, Purge(insert.digest))
    other.commit()

    assert waiter.wait() is True
    assert other.execute("SELECT count(*) FROM oncekey_outcomes").fetchone() == (0,)


def test_a_sweep_leaves_out_what_somebody_is_at(caller: Caller, other: Connection) -> None:
    inserts = [claim(caller, key, kept=1) for key in "ab"]
    caller.ask_all([caller.settle(insert) for insert in inserts])
    caller.clock.advance(1)
    other.execute(QUERIES["lock_claim"], {"id": inserts[0].id})

    assert caller.store.sweep(caller.clock.now(), 10) == 1
    other.rollback()
    assert caller.store.sweep(caller.clock.now(), 10) == 1


# -- somebody's transaction that stays open ------------------------------------------------------


def test_a_key_in_an_open_transaction_is_busy_and_stops_nobody_else(
    caller: Caller, other: Connection
) -> None:
    within = caller.insert("k")
    held = caller.store.ask_within(other, within)

    answers = caller.ask_all([caller.insert("k"), caller.insert("free")])
    other.rollback()

    assert held == Held(1)
    assert isinstance(answers[0], Found)
    assert not answers[0].lapsed
    assert answers[1] == Held(1)
    assert caller.ask(caller.insert("k")) == Held(1)


def test_an_outcome_whose_claim_is_locked_for_long_fails_alone(
    caller: Caller, other: Connection
) -> None:
    locked, free = claim(caller, "locked"), claim(caller, "free")
    other.execute(QUERIES["lock_claim"], {"id": locked.id})
    waiters = [ThreadWaiter(), ThreadWaiter(), ThreadWaiter()]
    requests = [caller.settle(locked), caller.settle(free), caller.insert("new")]

    for request, waiter in zip(requests, waiters, strict=True):
        caller.store.submit(request, waiter)
    answers = [waiter.wait() for waiter in waiters]
    other.rollback()

    assert isinstance(answers[0], StoreUnavailable)
    assert answers[1:] == [True, Held(1)]
    assert caller.ask(caller.settle(locked)) is True


def test_a_group_claims_in_the_order_of_digests(caller: Caller, other: Connection) -> None:
    """All do, so that groups which share keys wait for each other and never in a circle."""
    low, high = sorted([caller.insert("a"), caller.insert("b")], key=lambda each: each.digest)
    keys = [each.operation.ref.key for each in (low, high)]
    assert caller.store.ask_within(other, caller.insert(keys[0])) == Held(1)

    with closing(caller.store._session()) as session, ThreadPoolExecutor() as threads:
        group = threads.submit(session.commit, [high, low])
        wait_until_blocked(other)
        # Nothing to wait for: the group has come to the lower key and stopped there.
        other.execute("SET LOCAL lock_timeout = 100")
        within = caller.store.ask_within(other, caller.insert(keys[1]))
        other.commit()

    assert within == Held(1)
    assert [type(answer) for answer in group.result()] == [Found, Found]


def test_keys_claimed_by_several_at_once_are_held_once(place: Place) -> None:
    callers = [place.open(), place.open()]
    rounds = [
        [[caller.insert(f"{number}-{key}") for key in range(40)] for number in range(15)]
        for caller in callers
    ]

    def claim_all(caller: Caller, groups: list[list[Insert]], step: int) -> list[Any]:
        return [answer for group in groups for answer in caller.ask_all(list(group[::step]))]

    with ThreadPoolExecutor() as threads:
        answers = list(threads.map(claim_all, callers, rounds, [1, -1]))

    assert sum(each.count(Held(1)) for each in answers) == 15 * 40
    assert {type(answer) for each in answers for answer in each} <= {Held, Found}


# -- owners --------------------------------------------------------------------------------------


def test_an_owner_that_was_buried_starts_a_new_life_with_its_next_claim(
    place: Place, other: Connection
) -> None:
    first, second = place.open(), place.open()
    other.execute("DELETE FROM oncekey_owners")
    other.commit()

    first.ask_all([first.insert(f"k-{number}") for number in range(50)])

    found = [second.ask(second.insert(f"k-{number}")) for number in range(50)]
    assert not any(each.lapsed for each in found)
    assert len({each.record.owner for each in found}) == 1


def test_all_writers_of_a_process_share_its_new_life(caller: Caller, place: Place) -> None:
    dead = caller.store.owner
    with psycopg.connect(place.url, autocommit=True) as connection:
        caller.store.revive(connection, dead)
        alive = caller.store.owner
        caller.store.revive(connection, dead)
    assert alive != dead
    assert caller.store.owner == alive


@pytest.mark.parametrize("way", ["claim", "takeover"])
def test_nothing_is_claimed_under_a_stale_heartbeat(
    place: Place, other: Connection, way: str
) -> None:
    first, second = place.open(heartbeat=600.0), place.open(heartbeat=600.0)
    dead = lapsed(second, "dead")
    other.execute("UPDATE oncekey_owners SET heartbeat_at = 1")
    other.commit()

    insert = first.insert("k")
    first.ask(insert if way == "claim" else Take(dead.id, dead.digest, 1))

    silent = "SELECT id FROM oncekey_owners WHERE heartbeat_at = 1"
    owners = {row[0] for row in other.execute(silent).fetchall()}
    assert second.store.owner in owners
    assert first.store.owner not in owners


def test_an_owner_that_beats_again_is_not_forgotten(caller: Caller, place: Place) -> None:
    other = place.open()
    number = other.store.owner
    values = {"owner": number, "heartbeat": 12345}
    caller.store.transact(lambda run: run("forget_owner", values), write=True)
    owners = caller.store.transact(lambda run: run("owners", {}), write=False)
    assert number in {row[0] for row in owners}


def test_silence_counts_while_the_server_runs(caller: Caller, other: Connection) -> None:
    """Nobody can beat while it is down: after a restart all have their lease before them."""
    running = "extract(EPOCH FROM clock_timestamp() - pg_postmaster_start_time()) * 1000"
    row = other.execute(
        "SELECT oncekey_silence(1), oncekey_silence(oncekey_now() - 5), oncekey_silence(0), "
        + running
    ).fetchone()
    assert row is not None
    old, recent, retired, uptime = row
    assert 5 <= recent <= old <= uptime + 1
    assert retired is None


def test_an_answer_is_on_disk_whatever_the_servers_default_is(
    caller: Caller, other: Connection, place: Place
) -> None:
    other.execute("ALTER ROLE postgres SET synchronous_commit = off")
    other.commit()
    try:
        connection = caller.store.connect()
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
        connection.close()
    finally:
        other.execute("ALTER ROLE postgres RESET synchronous_commit")
        other.commit()
