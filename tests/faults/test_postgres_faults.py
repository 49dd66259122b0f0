"""PostgreSQL that stops, restarts and is cut off: nothing runs twice, nothing stays held, no
outcome is lost, and the store comes back by itself."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest

import oncekey
from oncekey import InProgress, Ledger, StoreUnavailable
from oncekey.core.ports import Abandon, Held, Peek, Request, Take
from oncekey.core.waiting import ThreadWaiter
from oncekey.stores import writer
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.proxy import GROUP, Proxy
from tests.fixtures.stores import DONE, Caller, Place, until

pytestmark = pytest.mark.postgres


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return new_schema(postgres.url())


@pytest.fixture
def place(url: str) -> Iterator[Place]:
    opened = Place(url)
    yield opened
    opened.close()


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[Proxy]:
    with closing(Proxy(postgres.port)) as opened:
        yield opened


@pytest.fixture
def cut_off(proxy: Proxy, postgres: PostgresServer, url: str, place: Place) -> Iterator[Caller]:
    """A store that reaches the server through the proxy only."""
    through = Place(url.replace(str(postgres.port), str(proxy.port)))
    caller = through.open()
    # Both sides of the test draw from the same numbers.
    caller.numbers = place._numbers
    assert caller.ask(caller.insert("warm")) == Held(1)
    yield caller
    through.close()


def answer_to(caller: Caller, request: Request) -> Any:
    """The answer, also when it is an error."""
    waiter = ThreadWaiter()
    caller.store.submit(request, waiter)
    return waiter.wait()


# -- a connection that is cut around a commit -----------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_claim_in_doubt_is_refused_and_does_not_stay_held(
    cut_off: Caller, place: Place, proxy: Proxy, when: Any
) -> None:
    other = place.open()
    proxy.cut(GROUP, when)

    answer = answer_to(cut_off, cut_off.insert("k"))

    assert isinstance(answer, StoreUnavailable)
    assert proxy.was_cut.is_set()
    until(lambda: other.ask(Peek(other.insert("k").digest)) is None)
    assert cut_off.ask(cut_off.insert("k")) == Held(1)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_outcome_in_doubt_is_stored_once(cut_off: Caller, proxy: Proxy, when: Any) -> None:
    insert = cut_off.insert("k")
    cut_off.ask(insert)
    proxy.cut(GROUP, when)

    assert cut_off.ask(cut_off.settle(insert)) is True

    assert proxy.was_cut.is_set()
    assert cut_off.ask(Peek(insert.digest)).record.outcome == DONE


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_takeover_in_doubt_is_refused_and_can_be_taken_again(
    cut_off: Caller, proxy: Proxy, when: Any
) -> None:
    insert = cut_off.insert("k")
    cut_off.ask(insert)
    cut_off.ask(Abandon(insert.id, 1))
    proxy.cut(b"COMMIT", when)

    answer = answer_to(cut_off, Take(insert.id, insert.digest, 1))

    assert isinstance(answer, StoreUnavailable)
    assert proxy.was_cut.is_set()
    found = until(lambda: (seen := cut_off.ask(Peek(insert.digest))).lapsed and seen)
    fence = found.record.fence
    assert fence == (2 if when == "after" else 1)
    assert cut_off.ask(Take(insert.id, insert.digest, fence)) == Held(fence + 1)


def test_what_a_cut_connection_still_does_is_ended_before_it_is_undone(
    cut_off: Caller, place: Place, proxy: Proxy, url: str
) -> None:
    """The server is at work on a claim when the line is cut, and would commit it later."""
    other = place.open()
    blocked = cut_off.insert("blocked")
    with psycopg.connect(url) as transaction:
        assert other.store.ask_within(transaction, other.insert("blocked")) == Held(1)
        proxy.cut(GROUP, "between")
        answer = answer_to(cut_off, blocked)
        # Another claim shows that the first one's undoing has been sent before it.
        until(lambda: answer_to(cut_off, cut_off.insert("next")) == Held(1))
        transaction.rollback()

    assert isinstance(answer, StoreUnavailable)
    assert other.ask(Peek(blocked.digest)) is None
    assert other.ask(other.insert("blocked")) == Held(1)


def test_a_line_that_was_hung_up_while_idle_is_made_anew_unnoticed(
    place: Place, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oncekey.stores.postgres.session._IDLE_SECONDS", 0.0)
    caller = place.open()
    caller.ask_all([caller.insert(f"k-{number}") for number in range(50)])
    caller.store.retention()
    with psycopg.connect(postgres.url(), autocommit=True) as operator:
        operator.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE application_name = 'oncekey'"
        )

    answers = caller.ask_all([caller.insert(f"l-{number}") for number in range(50)])

    assert answers == [Held(1)] * 50
    assert caller.store.retention() == {}


# -- a server that is away ------------------------------------------------------------------------


def test_claims_are_refused_while_the_server_is_away_and_resume_by_themselves(
    place: Place, postgres: PostgresServer
) -> None:
    caller = place.open()
    caller.ask(caller.insert("before"))
    postgres.stop()
    refused = [answer_to(caller, caller.insert(f"k-{number}")) for number in range(3)]
    with pytest.raises(StoreUnavailable):
        caller.store.retention()
    postgres.start()

    assert all(isinstance(answer, StoreUnavailable) for answer in refused)
    until(lambda: answer_to(caller, caller.insert("after")) == Held(1))
    assert caller.store.retention() == {}
    assert caller.ask(Peek(caller.insert("k-0").digest)) is None


def test_an_outcome_waits_for_the_server(
    place: Place, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A server that was stopped in the middle takes its time to start on a busy machine.
    monkeypatch.setattr(writer, "_PATIENCE", 100.0)
    caller = place.open()
    insert = caller.insert("k")
    caller.ask(insert)
    postgres.stop()
    waiter = ThreadWaiter()
    caller.store.submit(caller.settle(insert), waiter)
    # A claim sent behind it has been refused: the outcome was tried, and is still waiting.
    assert isinstance(answer_to(caller, caller.insert("other")), StoreUnavailable)
    postgres.start()

    assert waiter.wait() is True
    assert caller.ask(Peek(insert.digest)).record.outcome == DONE


def test_an_outcome_is_stored_though_its_caller_was_told_it_was_not(
    place: Place, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_PATIENCE", 0.0)
    caller = place.open()
    insert = caller.insert("k")
    caller.ask(insert)
    postgres.stop()
    answer = answer_to(caller, caller.settle(insert))
    postgres.start()

    assert isinstance(answer, StoreUnavailable)
    other = place.open()
    until(lambda: other.ask(Peek(insert.digest)).record.outcome == DONE)


def test_a_database_that_cannot_be_written_refuses_claims(place: Place, url: str) -> None:
    caller = place.open()
    read_only = "ALTER ROLE postgres SET default_transaction_read_only = "
    with psycopg.connect(url, autocommit=True) as operator:
        operator.execute("SET default_transaction_read_only = off")
        operator.execute(read_only + "on")
        try:
            operator.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE application_name = 'oncekey'"
            )
            until(lambda: "read-only" in str(answer_to(caller, caller.insert("k"))))
        finally:
            operator.execute(read_only + "off")
    place.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE application_name = 'oncekey'"
    )
    until(lambda: answer_to(caller, caller.insert("k")) == Held(1))


def test_every_key_takes_effect_once_over_restarts_under_load(
    url: str, postgres: PostgresServer
) -> None:
    ledger = oncekey.open(url)
    effects: Counter[str] = Counter()
    first_half = threading.Barrier(9)

    def work(worker: int) -> dict[str, int]:
        answers = {}
        for number in range(30):
            key = f"{worker}-{number}"
            if number in {5, 15}:
                first_half.wait()
            answers[key] = once_at_last(ledger, key, effects)
        return answers

    with ThreadPoolExecutor(8) as threads:
        working = [threads.submit(work, worker) for worker in range(8)]
        for mode in ("immediate", "fast"):
            first_half.wait()
            postgres.restart(mode)
        answers = {key: value for done in working for key, value in done.result().items()}

    assert effects == dict.fromkeys(answers, 1)
    assert len(answers) == 240
    again = {key: once_at_last(ledger, key, effects) for key in answers}
    assert again == answers
    assert effects == dict.fromkeys(answers, 1)
    ledger.close()


def once_at_last(ledger: Ledger, key: str, effects: Counter[str]) -> int:
    """As a client that tries again until it has its answer."""

    def charge() -> int:
        effects[key] += 1
        return len(effects)

    def attempt() -> list[int] | None:
        try:
            return [ledger.once(key, charge)]
        except (StoreUnavailable, InProgress):
            return None

    found: list[int] = until(attempt)
    return found[0]
