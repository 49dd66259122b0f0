"""Wall clocks that jump: expiry is exact, nothing lapses, no answer comes back from the past."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import oncekey
from oncekey import Busy, Claim, Ledger, Operation, Proceed, Replay
from tests.fixtures.claimant import outcome_of, ref_of

HOUR = 3_600_000
DAY, YEAR = 24 * HOUR, 365 * 24 * HOUR
JUMPS = {"forward": YEAR, "back": -YEAR}


class Clocks:
    """A wall clock that is set at will, and a steady one that only goes on."""

    def __init__(self) -> None:
        self.wall = 1_700_000_000_000
        self._steady = 10_000_000

    def now(self) -> int:
        return self.wall

    def steady(self) -> int:
        return self._steady


class Pair:
    """Two processes' ledgers on one file, under the same clocks."""

    def __init__(self, path: Path) -> None:
        self.clocks = Clocks()
        self.one = self.open(path)
        self.two = self.open(path)

    def open(self, path: Path) -> Ledger:
        return oncekey.open(f"sqlite:///{path}", clock=self.clocks, sweep_interval=0)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path / "oncekey.db")
    yield made
    made.one.close(grace=0)
    made.two.close(grace=0)


def claim_of(ledger: Ledger, key: str = "k", **options: Any) -> Claim:
    decision = ledger.begin(Operation(ref_of(key), **options))
    assert isinstance(decision, Proceed)
    return decision.claim


def answer_of(ledger: Ledger, key: str = "k") -> bytes:
    decision = ledger.begin(Operation(ref_of(key)))
    assert isinstance(decision, Replay)
    assert decision.record.outcome is not None
    return decision.record.outcome.body


jumping = pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS)


@jumping
def test_a_claim_in_flight_stays_its_holders(pair: Pair, jump: int) -> None:
    claim = claim_of(pair.one)
    pair.clocks.wall += jump
    assert isinstance(pair.two.begin(Operation(ref_of("k"))), Busy)
    assert pair.two.sweep() == 0
    record = claim.settle(outcome_of("done"))
    # Kept from the moment it was settled, by the clock of that moment.
    assert record.expires_at == pair.clocks.wall + DAY
    assert answer_of(pair.one) == answer_of(pair.two) == b"done"


def test_an_answer_expires_to_the_millisecond_whoever_remembers_it(pair: Pair) -> None:
    record = claim_of(pair.one).settle(outcome_of("first"))
    for _ in range(2):
        assert answer_of(pair.one) == answer_of(pair.two) == b"first"
    pair.clocks.wall = record.expires_at - 1
    assert answer_of(pair.one) == answer_of(pair.two) == b"first"
    pair.clocks.wall = record.expires_at
    claim_of(pair.two).settle(outcome_of("second"))
    assert answer_of(pair.one) == answer_of(pair.two) == b"second"


def test_an_answer_that_was_replaced_does_not_come_back_with_the_clock(pair: Pair) -> None:
    record = claim_of(pair.one).settle(outcome_of("first"))
    for _ in range(2):
        assert answer_of(pair.one) == answer_of(pair.two) == b"first"
    pair.clocks.wall = record.expires_at
    claim_of(pair.one).settle(outcome_of("second"))
    pair.clocks.wall = record.expires_at - 1
    assert answer_of(pair.one) == answer_of(pair.two) == b"second"


@jumping
def test_what_was_settled_before_a_jump_is_judged_by_the_clock_after_it(
    pair: Pair, jump: int
) -> None:
    claim_of(pair.one).settle(outcome_of("done"))
    assert answer_of(pair.two) == b"done"
    pair.clocks.wall += jump
    if jump > 0:
        assert isinstance(pair.two.begin(Operation(ref_of("k"))), Proceed)
    else:
        assert answer_of(pair.one) == answer_of(pair.two) == b"done"


def test_operations_are_numbered_in_their_order(pair: Pair) -> None:
    ids = []
    for number, jump in enumerate([0, -HOUR, HOUR, -YEAR, 1, YEAR, -1]):
        pair.clocks.wall += jump
        ids.append(claim_of(pair.one, f"k{number}").operation_id)
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
