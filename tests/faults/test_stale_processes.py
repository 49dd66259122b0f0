"""Processes that stood still or are slow: alive as long as they beat, fenced off after."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import oncekey
from oncekey import Busy, Ledger, Operation, Proceed, Ref, Replay, Scope
from tests.fixtures.claimant import claimant, outcome_of
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.processes import Start
from tests.fixtures.shop import connect
from tests.fixtures.stores import until
from tests.fixtures.street import Order, Server, Street

LEASE = 1000.0
# Beats never come by themselves here: only what is claimed can make one.
NEVER = {"lease": LEASE, "heartbeat": LEASE - 1, "sweep_interval": 0}


def operation(key: str = "k", **options: Any) -> Operation:
    return Operation(Ref(Scope(oncekey.namespace_of(), "POST /orders"), key), **options)


class Pair:
    """Two processes' ledgers on one file, under one clock."""

    def __init__(self, url: str) -> None:
        self.clock = FrozenClock()
        self.one: Ledger = oncekey.open(url, clock=self.clock, **NEVER)
        self.two: Ledger = oncekey.open(url, clock=self.clock, **NEVER)

    def stand_still(self) -> None:
        """Longer than a lease, for both, as when their machine is suspended."""
        self.clock.advance(int(LEASE * 1000) + 1)

    def outlive(self, beating: Ledger) -> None:
        """Longer than a lease, while one of them goes on."""
        for number in range(3):
            self.clock.advance(int(LEASE * 600))
            assert isinstance(
                beating.begin(operation(f"beat-{self.clock.now()}-{number}")), Proceed
            )


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(f"sqlite:///{tmp_path}/oncekey.db")
    yield made
    made.one.close(grace=0)
    made.two.close(grace=0)


def test_nothing_is_claimed_under_a_stale_heartbeat(pair: Pair) -> None:
    pair.stand_still()
    assert isinstance(pair.one.begin(operation()), Proceed)
    assert isinstance(pair.two.begin(operation()), Busy)


def test_a_claim_whose_holder_is_silent_while_others_beat_is_taken_over(pair: Pair) -> None:
    assert isinstance(pair.one.begin(operation()), Proceed)
    pair.outlive(pair.two)
    assert isinstance(pair.two.begin(operation()), Proceed)
    assert isinstance(pair.one.begin(operation()), Busy)


def test_who_was_silent_itself_lets_everybody_beat_first(pair: Pair) -> None:
    """A machine that wakes up has no dead processes, only late ones."""
    assert isinstance(pair.one.begin(operation()), Proceed)
    pair.stand_still()
    assert isinstance(pair.two.begin(operation()), Busy)
    assert isinstance(pair.two.begin(operation("other")), Proceed)
    assert isinstance(pair.two.begin(operation()), Busy)
    pair.outlive(pair.two)
    assert isinstance(pair.two.begin(operation()), Proceed)


def test_a_process_that_was_buried_starts_a_new_life_with_its_next_claim(pair: Pair) -> None:
    before = pair.one.store.owner
    pair.outlive(pair.two)
    pair.two.sweep()
    assert isinstance(pair.one.begin(operation()), Proceed)
    assert isinstance(pair.two.begin(operation()), Busy)
    assert pair.one.store.owner != before


def test_a_claim_of_a_retention_class_that_is_gone_can_be_settled(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/oncekey.db"
    before = oncekey.open(url, retention={"special": 60.0})
    assert isinstance(before.begin(operation(retention="special")), Proceed)
    before.close(grace=0)
    after = oncekey.open(url)
    decision = after.begin(operation())
    assert isinstance(decision, Proceed)
    decision.claim.settle(outcome_of("done"))
    assert isinstance(after.begin(operation()), Replay)
    after.close()


def test_a_row_that_makes_no_sense_stops_nobody(tmp_path: Path) -> None:
    """Retention is read with every heartbeat; what an operator wrote there by hand may be wrong."""
    url = f"sqlite:///{tmp_path}/oncekey.db"
    ledger = oncekey.open(url, lease=0.6)
    with closing(sqlite3.connect(tmp_path / "oncekey.db")) as file, file:
        file.execute("INSERT INTO oncekey_retention VALUES ('No Name', 5), ('interactive', -1)")
    first = _heartbeat_at(tmp_path)
    until(lambda: _heartbeat_at(tmp_path) > first)
    assert isinstance(ledger.begin(operation()), Proceed)
    other = oncekey.open(url)
    assert isinstance(other.begin(operation()), Busy)
    assert ledger.retention()["interactive"] == 86400.0
    other.close()
    ledger.close(grace=0)


def _heartbeat_at(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "oncekey.db")) as file:
        return int(file.execute("SELECT max(heartbeat_at) FROM oncekey_owners").fetchone()[0])


def test_two_processes_that_draw_one_number_do_not_share_a_claim(tmp_path: Path) -> None:
    check_twins(f"sqlite:///{tmp_path}/oncekey.db")


@pytest.mark.postgres
def test_two_processes_on_postgres_that_draw_one_number_do_not_share_a_claim(
    postgres_url: str,
) -> None:
    check_twins(postgres_url)


def check_twins(url: str) -> None:
    """Same key, same millisecond, same luck: one of them runs it."""
    twins = [oncekey.open(url, clock=FrozenClock(), randbits=lambda _: 7) for _ in range(2)]
    decisions = [twin.begin(operation()) for twin in twins]
    assert [type(decision) for decision in decisions] == [Proceed, Busy]
    # And neither stands in the way of the other's next key.
    assert [type(twin.begin(operation(f"k{twin.store.owner}"))) for twin in twins] == [Proceed] * 2
    for twin in twins:
        twin.close(grace=0)


# -- processes that are stopped, with a lease short enough to wait for -------------------


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def brief(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Street]:
    """Shops whose claims lapse soon."""
    sqlite = f"sqlite:///{tmp_path}/oncekey.db"
    url = sqlite if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    made = Street(url, tmp_path, lease=0.6)
    yield made
    made.close()


def stop_in_the_handler(street: Street, path: str) -> tuple[Server, Order]:
    """A process that holds a claim and stands still."""
    late = street.open()
    order = late.order(path, "k")
    late.pause()
    return late, order


def go_on(late: Server) -> None:
    late.resume()
    late.go()


@pytest.mark.parametrize("path, effects", [("/held", 2), ("/held-within", 1)])
def test_a_late_writer_changes_nothing_and_its_caller_gets_the_winners_answer(
    brief: Street, path: str, effects: int
) -> None:
    late, lost = stop_in_the_handler(brief, path)
    winner = brief.open()
    won = winner.order(path, "k")
    winner.go()
    kept = won.answer()
    assert (kept.status, kept.replayed) == (201, False)
    go_on(late)
    answer = lost.answer()
    assert (answer.status, answer.replayed, answer.body) == (201, True, kept.body)
    for server in (late, winner):
        assert server.ask(path, "k").body == kept.body
    assert len(brief.effects("k")) == effects
    assert kept.json["execution"] in brief.effects("k")


def test_every_verb_of_a_late_writer_is_refused_while_the_winner_runs(
    brief: Street, start: Start
) -> None:
    late, winner = (Teller(start, brief.url) for _ in range(2))
    assert late("begin", "k") == "Proceed"
    late.process.pause()
    assert winner("begin", "k", wait=60.0) == "Proceed"
    late.process.resume()
    assert late("settle", "k", "late") == "ClaimLost"
    assert late("release", "k") == "ClaimLost"
    assert late("begin", "k") == "Busy"
    assert winner("settle", "k", "won") == "settled"
    ledger = oncekey.open(brief.url)
    record = ledger.peek(operation().ref)
    assert record is not None
    assert record.outcome == outcome_of("won")
    assert record.attempts == 2
    ledger.close()


class Teller:
    """Another process with a ledger, told what to do."""

    def __init__(self, start: Start, url: str) -> None:
        self.process = start(claimant, url, {"lease": 0.6})

    def __call__(self, verb: str, *words: Any, **options: Any) -> Any:
        self.process.tell((verb, words, options))
        return self.process.hear()


def test_a_late_writer_waits_for_the_winner(brief: Street) -> None:
    late, lost = stop_in_the_handler(brief, "/held")
    winner = brief.open()
    won = winner.order("/held", "k")
    go_on(late)
    # The effect comes right before the outcome that is refused.
    until(lambda: brief.effects("k"))
    winner.go()
    assert lost.answer().body == won.answer().body


def test_a_late_writer_nobody_took_over_from_is_still_in_time(brief: Street) -> None:
    late, order = stop_in_the_handler(brief, "/held-refuse")
    other = brief.open()
    assert other.ask("/held-refuse", "k").problem == "outcome-unknown"
    go_on(late)
    kept = order.answer()
    assert (kept.status, kept.replayed) == (201, False)
    assert other.ask("/held-refuse", "k").body == kept.body
    assert len(brief.effects("k")) == 1


def test_a_process_that_was_stopped_and_held_nothing_works_on(brief: Street) -> None:
    stopped, other = brief.open(), brief.open()
    before = stopped.ask("/rerun", "before")
    stopped.pause()
    held = other.order("/held", "k")
    pass_leases(brief)
    stopped.resume()
    assert stopped.ask("/rerun", "before").body == before.body
    assert stopped.ask("/rerun", "after").status == 201
    other.go()
    assert held.answer().status == 201
    assert len(brief.effects("k")) == 1


def test_a_handler_slower_than_the_lease_is_not_taken_over(brief: Street) -> None:
    slow, other = brief.open(), brief.open(in_flight="conflict")
    order = slow.order("/held", "k")
    pass_leases(brief)
    assert other.ask("/held", "k").problem == "request-in-progress"
    slow.go()
    kept = order.answer()
    assert other.ask("/held", "k").body == kept.body
    assert brief.effects("k") == [kept.json["execution"]]


def pass_leases(street: Street) -> None:
    """Wait until three leases have passed for those who beat."""
    first = _heartbeat(street)
    until(lambda: _heartbeat(street) - first > 3 * 600)


def _heartbeat(street: Street) -> int:
    with connect(street.url) as connection:
        newest = connection.execute("SELECT max(heartbeat_at) FROM oncekey_owners").fetchone()
    return int(newest[0])
