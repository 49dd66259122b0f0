"""How long a request may wait for an end: as asked, a minute at most, and never for nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, TypeVar

LONGEST = 60.0

T = TypeVar("T")
Message = MutableMapping[str, Any]


class Patience:
    """Of one server. When it is about to stop, `end` lets everybody go who waits."""

    def __init__(self) -> None:
        self._over = asyncio.Event()
        self.waiting = 0
        """How many requests wait now."""

    def end(self) -> None:
        self._over.set()

    async def wait(
        self,
        waiting: Coroutine[Any, Any, T],
        receive: Callable[[], Awaitable[Message]] | None = None,
    ) -> T | None:
        """What `waiting` answers; None when the server goes before, or the client is gone, as
        `receive` tells where a call is not cancelled for that."""
        task = asyncio.ensure_future(waiting)
        ends: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._over.wait())]
        if receive is not None:
            ends.append(asyncio.ensure_future(_gone(receive)))
        self.waiting += 1
        try:
            await asyncio.wait([task, *ends], return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            self.waiting -= 1
            for each in (task, *ends):
                each.cancel()


async def _gone(receive: Callable[[], Awaitable[Message]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
