"""Several callers at once, each with dice of his own: who runs first changes nothing."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
_SPREAD = 0.3


async def crowd(
    dice: random.Random, tasks: Iterable[Callable[[random.Random], Awaitable[T]]]
) -> list[T]:
    """Each begins a little later than the others, or at the same moment."""

    async def begin(task: Callable[[random.Random], Awaitable[T]], own: random.Random) -> T:
        if own.random() < 0.7:
            await asyncio.sleep(own.random() * _SPREAD)
        return await task(own)

    return await asyncio.gather(*(begin(task, random.Random(dice.random())) for task in tasks))
