"""Remembered answers: bounded, and never given after an expiry or a purge."""

import pytest

from oncekey.core.cache import ReplayCache
from oncekey.core.model import Kind, Outcome, Record, Ref
from oncekey.core.scope import Scope
from oncekey.testing import FrozenClock


class Epoch:
    """What a store tells: a number that changes with each purge, None while it cannot be known."""

    def __init__(self) -> None:
        self.value: int | None = 0

    def __call__(self) -> int | None:
        return self.value


@pytest.fixture
def epoch() -> Epoch:
    return Epoch()


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(now=100)


@pytest.fixture
def cache(epoch: Epoch) -> ReplayCache:
    return ReplayCache(20_000, epoch)


def record(size: int = 0, expires_at: int = 200_000) -> Record:
    ref = Ref(Scope("t-a:b:user:c", "e"), "k")
    outcome = Outcome(Kind.RESPONSE, 200, (), b"x" * size)
    return Record(1, ref, b"f" * 16, 1, 1, "", "interactive", 0, expires_at, 0, outcome)


def test_what_was_put_is_given(cache: ReplayCache, clock: FrozenClock) -> None:
    kept = record()
    cache.put(b"a", kept, cache.epoch())
    assert cache.get(b"a", clock) is kept
    assert cache.get(b"b", clock) is None


def test_what_is_not_settled_is_not_kept(cache: ReplayCache, clock: FrozenClock) -> None:
    cache.put(b"a", record()._replace(outcome=None), cache.epoch())
    assert cache.get(b"a", clock) is None


def test_the_bound_is_in_bytes_and_the_least_used_goes_first(
    cache: ReplayCache, clock: FrozenClock
) -> None:
    for digest in (b"a", b"b", b"c"):
        cache.put(digest, record(5000), cache.epoch())
    cache.get(b"a", clock)
    cache.put(b"d", record(5000), cache.epoch())
    kept = [digest for digest in (b"a", b"b", b"c", b"d") if cache.get(digest, clock)]
    assert kept == [b"a", b"c", b"d"]


def test_one_larger_than_the_bound_is_not_kept(cache: ReplayCache, clock: FrozenClock) -> None:
    cache.put(b"a", record(20_001), cache.epoch())
    assert cache.get(b"a", clock) is None
    cache.put(b"b", record(5000), cache.epoch())
    assert cache.get(b"b", clock) is not None


def test_putting_again_counts_once(cache: ReplayCache, clock: FrozenClock) -> None:
    for _ in range(100):
        cache.put(b"a", record(5000), cache.epoch())
    cache.put(b"b", record(5000), cache.epoch())
    assert cache.get(b"a", clock)
    assert cache.get(b"b", clock)


def test_many_small_ones_are_bounded_too(cache: ReplayCache, clock: FrozenClock) -> None:
    digests = [number.to_bytes(2) for number in range(1000)]
    for digest in digests:
        cache.put(digest, record(), cache.epoch())
    assert 0 < len([digest for digest in digests if cache.get(digest, clock)]) <= 20


def test_nothing_is_given_from_its_expiry_on(cache: ReplayCache, clock: FrozenClock) -> None:
    cache.put(b"a", record(expires_at=101_000), cache.epoch())
    clock.advance(0.999)
    assert cache.get(b"a", clock)
    clock.advance(0.001)
    assert cache.get(b"a", clock) is None


def test_what_expired_does_not_come_back_when_the_clock_steps_back(
    cache: ReplayCache, clock: FrozenClock
) -> None:
    cache.put(b"a", record(expires_at=101_000), cache.epoch())
    clock.set(102)
    assert cache.get(b"a", clock) is None
    clock.set(100)
    assert cache.get(b"a", clock) is None


def test_a_purge_anywhere_makes_everything_forgotten(
    cache: ReplayCache, clock: FrozenClock, epoch: Epoch
) -> None:
    cache.put(b"a", record(), cache.epoch())
    epoch.value = 2
    assert cache.get(b"a", clock) is None
    epoch.value = 0
    assert cache.get(b"a", clock) is None


def test_nothing_is_given_while_a_purge_is_under_way(
    cache: ReplayCache, clock: FrozenClock, epoch: Epoch
) -> None:
    cache.put(b"a", record(), cache.epoch())
    epoch.value = None
    assert cache.get(b"a", clock) is None
    cache.put(b"b", record(), cache.epoch())
    assert cache.get(b"b", clock) is None


def test_what_was_read_before_a_purge_is_stale(
    cache: ReplayCache, clock: FrozenClock, epoch: Epoch
) -> None:
    before = cache.epoch()
    epoch.value = 2
    cache.put(b"a", record(), before)
    assert cache.get(b"a", clock) is None


def test_a_stale_put_does_not_hide_what_is_fresh(
    cache: ReplayCache, clock: FrozenClock, epoch: Epoch
) -> None:
    before = cache.epoch()
    epoch.value = 2
    cache.put(b"fresh", record(), cache.epoch())
    cache.put(b"stale", record(), before)
    assert cache.get(b"stale", clock) is None


def test_without_a_size_nothing_is_kept(clock: FrozenClock, epoch: Epoch) -> None:
    cache = ReplayCache(0, epoch)
    cache.put(b"a", record(), cache.epoch())
    assert cache.get(b"a", clock) is None
