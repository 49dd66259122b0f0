"""A ledger at a whole hour, on a clock that stands still."""

from collections.abc import Iterator

import pytest

import oncekey
from oncekey import Ledger
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.ticks import START


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(START)


@pytest.fixture
def ledger(clock: FrozenClock) -> Iterator[Ledger]:
    opened = oncekey.open("memory://", clock=clock, sweep_interval=0)
    yield opened
    opened.close()
