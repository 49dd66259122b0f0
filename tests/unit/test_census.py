"""Counts are cached, and made one at a time."""

import asyncio
from typing import Any

import pytest

import oncekey
from oncekey.core.census import Census, Censuses, Counted
from oncekey.core.errors import StoreUnavailable
from oncekey.core.model import Operation, Ref
from oncekey.core.scope import Scope
from oncekey.stores.memory.store import MemoryStore
from tests.fixtures.api_site import turn
from tests.fixtures.frozen import FrozenClock

pytestmark = pytest.mark.anyio


class Slow(MemoryStore):
    """Counting takes as long as `takes` says, in ms."""

    def __init__(self, clock: FrozenClock) -> None:
        super().__init__()
        self.clock = clock
        self.takes = 0
        self.counts = 0
        self.is_away = False

    def read(self, request: Any) -> Any:
        assert request == Census()
        self.counts += 1
        self.clock.advance(self.takes)
        if self.is_away:
            raise StoreUnavailable
        return super().read(request)


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def store(clock: FrozenClock) -> Slow:
    return Slow(clock)


@pytest.fixture
def censuses(store: Slow, clock: FrozenClock) -> Censuses:
    return Censuses(oncekey.Ledger(store, codec=oncekey.open("memory://").codec, clock=clock))


def claim(censuses: Censuses, key: str) -> None:
    censuses._ledger.begin(Operation(Ref(Scope("ns", "POST /"), key)))


async def number(censuses: Censuses) -> int:
    counted = await censuses.latest()
    assert isinstance(counted, Counted)
    return counted.claims_in_progress


async def test_a_count_is_good_for_five_seconds(
    censuses: Censuses, store: Slow, clock: FrozenClock
) -> None:
    assert await number(censuses) == 0
    claim(censuses, "a")
    clock.advance(4_999)
    assert await number(censuses) == 0
    clock.advance(1)
    assert await number(censuses) == 1
    counted = await censuses.latest()
    assert counted is not None
    assert counted.at == clock.now()
    assert store.counts == 2


async def test_a_count_is_a_hundredth_of_the_time_at_most(
    censuses: Censuses, store: Slow, clock: FrozenClock
) -> None:
    store.takes = 60
    await number(censuses)
    clock.advance(5_999)
    await number(censuses)
    assert store.counts == 1
    clock.advance(1)
    await number(censuses)
    while store.counts < 2:
        await turn()


async def test_nobody_waits_for_a_count_that_takes_long_but_for_the_first(
    censuses: Censuses, store: Slow, clock: FrozenClock
) -> None:
    store.takes = 51
    assert await number(censuses) == 0
    claim(censuses, "a")
    clock.advance(10_000)
    assert await number(censuses) == 0
    while await number(censuses) == 0:
        await turn()
    assert store.counts == 2


async def test_those_who_ask_together_share_a_count(censuses: Censuses, store: Slow) -> None:
    await asyncio.gather(*(number(censuses) for _ in range(10)))
    assert store.counts == 1


async def test_a_store_that_is_away_leaves_the_last_count(
    censuses: Censuses, store: Slow, clock: FrozenClock
) -> None:
    store.is_away = True
    assert await censuses.latest() is None
    store.is_away = False
    assert await censuses.latest() is None
    clock.advance(5_000)
    assert await number(censuses) == 0
    store.is_away = True
    clock.advance(5_000)
    assert await number(censuses) == 0
    assert store.counts == 3
