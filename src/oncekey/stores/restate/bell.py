"""By which processes on a cluster call each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from oncekey.core.errors import OnceKeyError
from oncekey.stores.bell import PAUSE, Heard, Listeners
from oncekey.stores.restate.link import Link
from oncekey.stores.restate.ringing import ALL, BELL, EAR, WAIT

_RETRY = 0.5
# The last ring goes out before a process leaves, if that does not take longer.
_CLOSE_TIMEOUT = 2.0


class RestateBell:
    """Belongs to one loop. Whoever listens in this process does so by one call that waits."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._listeners = Listeners()
        self._stops: dict[object, Callable[[], None]] = {}
        self._hears = False
        self._listening: asyncio.Task[None] | None = None
        self._rung = False
        self._ringing: asyncio.Task[None] | None = None

    def ring(self) -> None:
        """Rings that come while one is under way are one ring, after it."""
        self._rung = True
        if self._ringing is None or self._ringing.done():
            self._ringing = asyncio.create_task(self._ring())

    def add(self, listening: object, heard: Heard) -> None:
        self._stops[listening] = self._listeners.add(heard)
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())
        elif self._hears:
            alone = Listeners()
            alone.add(heard)
            alone.tell()

    def remove(self, listening: object) -> None:
        stop = self._stops.pop(listening, None)
        if stop is not None:
            stop()
        if not self._stops and self._listening is not None:
            self._listening.cancel()
            self._listening, self._hears = None, False

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
        if self._ringing is not None:
            await asyncio.wait([self._ringing], timeout=_CLOSE_TIMEOUT)
            self._ringing.cancel()

    async def _ring(self) -> None:
        while self._rung:
            self._rung = False
            try:
                await self._link.call(BELL, ALL, "ring", self._link.owner)
            except OnceKeyError:
                self._rung = True
                await asyncio.sleep(_RETRY)

    async def _listen(self) -> None:
        """From a count on nothing is missed, however long it takes to call again."""
        while True:
            with suppress(OnceKeyError):
                seen = await self._link.call(BELL, ALL, "count", None)
                self._hears = True
                self._listeners.tell()
                await self._hear(seen)
            self._hears = False
            await asyncio.sleep(_RETRY)

    async def _hear(self, seen: int) -> None:
        while True:
            asked = [self._link.key(ALL), self._link.owner, seen]
            told = await self._link.call(
                EAR, None, "listen", asked, patience=2.0 * WAIT, attempt=1.2 * WAIT
            )
            if told is not None:
                seen = told
                self._listeners.tell()
                await asyncio.sleep(PAUSE)
