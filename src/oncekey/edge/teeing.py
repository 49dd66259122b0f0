"""Events on their way to a client, gathered meanwhile for whoever asks again. A client that leaves
does not stop them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from oncekey.core.errors import UpstreamError
from oncekey.edge.asked import Following


class TooMany:
    """More than are kept."""


Gathered = bytes | TooMany | UpstreamError
"""All of them, or why there is nothing to keep."""

# Read to their end though nobody listens: a task that nothing refers to may be collected.
_left: set[asyncio.Task[None]] = set()


class Teed:
    """`first` has gone out already. `conclude` is told once what it all came to: when they end, are
    more than `limit` bytes, or break off."""

    def __init__(
        self,
        first: bytes,
        rest: Following,
        limit: int,
        conclude: Callable[[Gathered], Awaitable[None]],
    ) -> None:
        self._pieces = [first]
        self._size = len(first)
        self._rest = rest
        self._limit = limit
        self._conclude = conclude
        self._concluded = False

    def __aiter__(self) -> Teed:
        return self

    async def __anext__(self) -> bytes:
        try:
            piece = await anext(self._rest)
        except StopAsyncIteration:
            await self._end(b"".join(self._pieces))
            raise
        except UpstreamError as error:
            await self._end(error)
            raise
        await self._gather(piece)
        return piece

    async def aclose(self) -> None:
        """The client has gone: what can still be kept is read to its end, for its retry."""
        if self._concluded:
            await self._rest.aclose()
            return
        task = asyncio.create_task(self._read_on())
        _left.add(task)
        task.add_done_callback(_left.discard)

    async def _read_on(self) -> None:
        try:
            async for _ in self:
                if self._concluded:
                    break
        except UpstreamError:
            # Nobody is there to be told; the store is.
            pass
        finally:
            await self._rest.aclose()

    async def _gather(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._limit:
            self._pieces.append(piece)
        else:
            await self._end(TooMany())

    async def _end(self, gathered: Gathered) -> None:
        if not self._concluded:
            self._concluded = True
            self._pieces.clear()
            await self._conclude(gathered)
