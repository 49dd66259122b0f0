"""The life of this process as others see it, and of others as this one sees them."""

from __future__ import annotations

import secrets
from typing import Any

from oncekey.core.work import ENGINE
from oncekey.stores.restate.link import Link
from oncekey.stores.restate.owners import ALL, SERVICE

_NOBODY = 0
# A number that JSON holds exactly everywhere.
_BITS = 52


class Life:
    def __init__(self, link: Link, lease: int) -> None:
        self._link = link
        self._lease = lease

    async def begin(self) -> dict[str, float]:
        self._link.owner = secrets.randbits(_BITS) + 1
        return await self.beat()

    async def beat(self) -> dict[str, float]:
        """A sign of life; answers the retention classes."""
        told: dict[str, float] = await self._ask("beat", [self._link.owner, self._lease])
        return told

    async def end(self) -> None:
        """What this process still holds lapses at once."""
        await self._ask("retire", self._link.owner)

    async def is_gone(self, owner: int) -> bool:
        if owner in {self._link.owner, ENGINE}:
            return False
        if owner == _NOBODY:
            return True
        silence = (await self._ask("silences", None)).get(str(owner))
        return silence is None or silence > self._lease

    async def _ask(self, handler: str, value: Any) -> Any:
        return await self._link.call(SERVICE, ALL, handler, value)
