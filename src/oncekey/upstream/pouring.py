"""A request whose body comes in pieces. Nothing is sent before there is a first piece, so that a
body that breaks off at once leaves no doubt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING

from oncekey.core.errors import UpstreamUncertain, UpstreamUnreachable
from oncekey.upstream.request import LAST_CHUNK, chunk_of

if TYPE_CHECKING:
    from oncekey.upstream.ask import Ask
    from oncekey.upstream.connection import Connection

Pieces = Iterable[bytes] | AsyncIterable[bytes]


class _Misfit(ValueError):
    """The body of a request is not as long as was said."""


class Pouring:
    """Takes the first piece, has the ask placed on a connection, then writes the others."""

    __slots__ = ("_ask", "_left", "_length", "_pieces", "_placed", "_task", "unsent")

    def __init__(self, ask: Ask, pieces: Pieces, length: int | None) -> None:
        self._ask = ask
        self._pieces = pieces
        self._length = length
        self._left = length or 0
        self._placed: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None
        self.unsent = True
        """Some of the body was not written."""

    def start(self, place: Callable[[Ask], None]) -> asyncio.Task[None]:
        self._task = asyncio.get_running_loop().create_task(self._run(place))
        return self._task

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def placed(self, connection: Connection) -> None:
        """The head and the first piece are written."""
        if not self._placed.done():
            self._placed.set_result(connection)

    @property
    def waits(self) -> bool:
        """Nothing of it is written yet."""
        return not self._placed.done()

    async def _run(self, place: Callable[[Ask], None]) -> None:
        try:
            async with aclosing(_each(self._pieces)) as pieces:
                await self._pour(pieces, place)
        except Exception as error:  # noqa: BLE001 - whatever the body raises is told
            self._break_off(error)

    async def _pour(self, pieces: AsyncIterator[bytes], place: Callable[[Ask], None]) -> None:
        first = await anext(pieces, b"")
        self._ask.payload += self._framed(first) if first else self._last()
        self._ask.restart()
        place(self._ask)
        connection = await self._placed
        if first:
            async for piece in pieces:
                await connection.drained()
                connection.write(self._framed(piece))
                self._ask.prolong()
            connection.write(self._last())
        self.unsent = False

    def _framed(self, piece: bytes) -> bytes:
        if self._length is None:
            return chunk_of(piece)
        self._left -= len(piece)
        if self._left < 0:
            raise _Misfit(f"the body has more than the {self._length} bytes it was said to have")
        return piece

    def _last(self) -> bytes:
        if self._left:
            raise _Misfit(f"{self._left} bytes of the body are missing")
        return LAST_CHUNK if self._length is None else b""

    def _break_off(self, cause: Exception) -> None:
        why = f"the body of the request broke off: {cause}"
        if self.waits:
            unsent = UpstreamUnreachable(why)
            unsent.__cause__ = cause
            self._ask.fail(unsent)
            return
        uncertain = UpstreamUncertain(why)
        uncertain.__cause__ = cause
        if self._ask.connection is not None:
            self._ask.connection.fail(uncertain)


async def _each(pieces: Pieces) -> AsyncGenerator[bytes]:
    """Without empty ones: an empty chunk would be the last."""
    if isinstance(pieces, AsyncIterable):
        async for piece in pieces:
            if piece:
                yield piece
        return
    for piece in pieces:
        if piece:
            yield piece
