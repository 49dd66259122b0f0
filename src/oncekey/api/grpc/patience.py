"""How long a call may wait: as asked, but within a minute, its deadline and the server's life."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from oncekey.api.patience import LONGEST

# What is left of a deadline for the answer to travel in.
_TRAVEL = 0.25
_TRAVEL_SHARE = 0.2

T = TypeVar("T")


class Patience:
    def __init__(self) -> None:
        self._over = False
        self._ends: set[asyncio.Future[None]] = set()

    async def wait(self, waiting: Coroutine[Any, Any, T], at_end: Callable[[], Awaitable[T]]) -> T:
        """What `waiting` answers; when the server is about to stop, at once what `at_end` does."""
        task = asyncio.ensure_future(waiting)
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ends.add(end)
        try:
            if not self._over:
                either: set[asyncio.Future[Any]] = {task, end}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else await at_end()
        finally:
            task.cancel()
            self._ends.discard(end)

    def end(self) -> None:
        """Let everybody go who waits, and nobody wait from now on."""
        self._over = True
        for end in self._ends:
            if not end.done():
                end.set_result(None)


def bounded(asked: float, seconds_left: float | None) -> float:
    """How long to wait, so that an answer comes before the deadline does."""
    if seconds_left is None:
        return min(asked, LONGEST)
    travel = min(_TRAVEL, seconds_left * _TRAVEL_SHARE)
    return max(0.0, min(asked, LONGEST, seconds_left - travel))
