"""Many calls of the same kind, some of them at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

T = TypeVar("T")

_AT_ONCE = 32


async def in_turn(work: Iterable[Awaitable[T]]) -> list[T]:
    """What each comes to."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(each: Awaitable[T]) -> T:
        async with room:
            return await each

    return list(await asyncio.gather(*map(one, work)))
