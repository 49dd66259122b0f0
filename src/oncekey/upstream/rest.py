"""The remainder of an answer that is handed on before its end."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from oncekey.core.errors import UpstreamError
from oncekey.upstream.ask import Ask

# What may wait here for a slow reader.
MOST_AHEAD = 64 << 10


class Rest:
    """Read as fast as it is taken. Whoever has it reads it to its end, or closes it: until then it
    holds a connection."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._pieces: deque[bytes] = deque()
        self._ahead = 0
        self._paused = False
        self._end: UpstreamError | bool = False
        self._news: asyncio.Future[None] | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._pieces:
            if isinstance(self._end, UpstreamError):
                raise self._end
            if self._end:
                raise StopAsyncIteration
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        piece = self._pieces.popleft()
        self._ahead -= len(piece)
        if self._paused and self._ahead <= MOST_AHEAD // 2:
            self._paused = False
            self._ask.resume()
        return piece

    async def aclose(self) -> None:
        """Nobody reads on."""
        self._pieces.clear()
        self.close(True)
        self._ask.abandon()

    def put(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._ahead += len(piece)
        if self._ahead > MOST_AHEAD and not self._paused:
            self._paused = True
            self._ask.pause()
        self._wake()

    def close(self, end: UpstreamError | bool) -> None:
        self._end = self._end or end
        self._wake()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
