"""Processes that stood still or are slow: alive as long as they beat, fenced off after."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import oncekey
from oncekey import Busy, Ledger, Operation, Proceed, Ref, Scope
from tests.fixtures.frozen import FrozenClock

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
        """Longer than a lease, for both."""
        self.clock.advance(int(LEASE * 1000) + 1)


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


def test_a_claim_taken_over_under_a_stale_heartbeat_is_held(pair: Pair) -> None:
    assert isinstance(pair.one.begin(operation()), Proceed)
    pair.stand_still()
    assert isinstance(pair.two.begin(operation()), Proceed)
    assert isinstance(pair.one.begin(operation()), Busy)


def test_a_process_that_was_buried_starts_a_new_life_with_its_next_claim(pair: Pair) -> None:
    before = pair.one.store.owner
    pair.stand_still()
    pair.two.sweep()
    assert isinstance(pair.one.begin(operation()), Proceed)
    assert isinstance(pair.two.begin(operation()), Busy)
    assert pair.one.store.owner != before


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
