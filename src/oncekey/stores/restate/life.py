"""The life of this process as others see it, and of others as this one sees them."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

from oncekey.core.clock import SystemClock
from oncekey.core.work import ENGINE
from oncekey.stores.restate.link import Link
from oncekey.stores.restate.owners import ALL, SERVICE

_NOBODY = 0
# A number that JSON holds exactly everywhere.
_BITS = 52
_steady = SystemClock().steady


class Census(NamedTuple):
    """Who holds what it has claimed, at one moment. All others are gone."""

    living: frozenset[int]

    def is_gone(self, owner: int) -> bool:
        return owner not in self.living


class Life:
    """`lease` and `heartbeat` are milliseconds. Whatever clock a ledger is given, those who share a
    cluster live in real time."""

    def __init__(
        self,
        link: Link,
        lease: int,
        heartbeat: int,
        steady: Callable[[], int] = _steady,
    ) -> None:
        self._link = link
        self._lease = lease
        self._heartbeat = heartbeat
        self._steady = steady
        self._ahead: int | None = None

    async def begin(self) -> dict[str, float]:
        self._link.owner = secrets.randbits(_BITS) + 1
        return await self.beat()

    async def beat(self) -> dict[str, float]:
        """A sign of life; answers the retention classes."""
        asked = [self._link.owner, self._lease, self._heartbeat, self._how_late()]
        classes: dict[str, float]
        latest, classes = await self._ask("beat", asked)
        self._learn(latest)
        return classes

    def _how_late(self) -> int:
        """By the clock of the owners, at least."""
        return 0 if self._ahead is None else self._steady() + self._ahead

    def _learn(self, latest: int) -> None:
        """It was that late when it was told, and is later by now. What is known is never too much,
        however long calls take, so that all of them together do not make time run."""
        ahead = latest - self._steady()
        self._ahead = ahead if self._ahead is None else max(self._ahead, ahead)

    async def end(self) -> None:
        """What this process still holds lapses at once."""
        await self._ask("retire", self._link.owner)

    async def is_gone(self, owner: int) -> bool:
        if owner in {self._link.owner, ENGINE}:
            return False
        return owner == _NOBODY or (await self.census()).is_gone(owner)

    async def census(self) -> Census:
        silences: dict[str, int] = await self._ask("silences", None)
        heard = (int(each) for each, silence in silences.items() if silence <= self._lease)
        return Census(frozenset({*heard, self._link.owner, ENGINE}))

    async def _ask(self, handler: str, value: Any) -> Any:
        return await self._link.call(SERVICE, ALL, handler, value)
