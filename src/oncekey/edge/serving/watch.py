"""Ends connections whose request does not come in time, or whose answer is not taken. One timer for
all of them."""

from __future__ import annotations

import asyncio
from typing import Protocol

TICK = 0.5


class Watched(Protocol):
    due: float
    """When what is awaited is late, by the loop's clock; infinite while nothing is."""
    stuck: float
    """The same of what waits to be written."""

    def end_late(self) -> None: ...


class Watch:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._watched: set[Watched] = set()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, each: Watched) -> None:
        self._watched.add(each)
        if self._timer is None:
            self._timer = self._loop.call_later(TICK, self._tick)

    def discard(self, each: Watched) -> None:
        self._watched.discard(each)

    def _tick(self) -> None:
        self.run_once(self._loop.time())
        self._timer = self._loop.call_later(TICK, self._tick) if self._watched else None

    def run_once(self, now: float) -> None:
        for each in [each for each in self._watched if each.due < now or each.stuck < now]:
            each.end_late()
