"""For tests of code that uses OnceKey: time that stands still, and a ledger that leaves nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from oncekey.compose import open_ledger
from oncekey.core.clock import Clock
from oncekey.core.ledger import Ledger

__all__ = ["FrozenClock", "memory_ledger"]

_START = datetime(2026, 1, 1, tzinfo=UTC)


class FrozenClock:
    """A clock that only moves when it is told to: `FrozenClock(datetime(2026, 1, 1, tzinfo=UTC))`.

    `now` is a moment with its zone, or seconds since 1970.
    """

    def __init__(self, now: datetime | float = _START) -> None:
        self._now = _milliseconds_of(now)
        self._steady = 0

    def now(self) -> int:
        return self._now

    def steady(self) -> int:
        return self._steady

    def advance(self, seconds: float) -> None:
        """Let time pass, for expiry and for leases alike."""
        if seconds < 0:
            raise ValueError("time does not pass backwards; step the wall clock with set()")
        self._now += round(seconds * 1000)
        self._steady += round(seconds * 1000)

    def set(self, now: datetime | float) -> None:
        """Step the wall clock, forwards or back, as an administrator would. No time passes."""
        self._now = _milliseconds_of(now)


def memory_ledger(clock: Clock | None = None, **options: Any) -> Ledger:
    """A ledger in memory, gone with the test. `options` are those of `oncekey.open`."""
    return open_ledger("memory://", clock=clock or FrozenClock(), sweep_interval=0, **options)


def _milliseconds_of(moment: datetime | float) -> int:
    if not isinstance(moment, datetime):
        return round(moment * 1000)
    if moment.tzinfo is None:
        raise ValueError("say which zone the moment is in: datetime(…, tzinfo=UTC)")
    return round(moment.timestamp() * 1000)
