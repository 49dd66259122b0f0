"""An answer as a value, for whoever can wait for it: whole, or its beginning and what follows."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import NamedTuple

from oncekey.core.errors import UpstreamError
from oncekey.core.model import Headers
from oncekey.edge.upstream.ask import Ask

# What may wait here for a slow reader.
MOST_AHEAD = 64 << 10


class Answer(NamedTuple):
    status: int
    headers: Headers
    body: bytes
    rest: Rest | None = None
    """What follows `body`, when the whole was more than was asked for. Read it to its end, or close
    it: until then it has a connection of its own."""


class Rest:
    """The remainder of an answer, read as fast as it is taken."""

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


class Gathering:
    """The listener behind `send`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int | None) -> None:
        self.answer: asyncio.Future[Answer] = loop.create_future()
        self.ask: Ask | None = None
        self._most = most
        self._beginning: tuple[int, Headers] = (0, ())
        self._pieces: list[bytes] = []
        self._size = 0
        self._rest: Rest | None = None

    def whole(self, status: int, headers: Headers, body: bytes) -> None:
        if self._most is None or len(body) <= self._most:
            self._give(Answer(status, headers, body))
            return
        assert self.ask is not None
        rest = Rest(self.ask)
        rest.put(body[self._most :])
        rest.close(True)
        self._give(Answer(status, headers, body[: self._most], rest))

    def began(self, status: int, headers: Headers) -> None:
        self._beginning = (status, headers)

    def chunk(self, data: bytes) -> None:
        if self._rest is not None:
            self._rest.put(data)
            return
        self._pieces.append(data)
        self._size += len(data)
        if self._most is not None and self._size > self._most:
            self._overflow(self._most)

    def ended(self) -> None:
        if self._rest is not None:
            self._rest.close(True)
        else:
            self._give(Answer(*self._beginning, b"".join(self._pieces)))

    def failed(self, error: UpstreamError) -> None:
        if self._rest is not None:
            self._rest.close(error)
        elif not self.answer.done():
            self.answer.set_exception(error)

    def _overflow(self, most: int) -> None:
        assert self.ask is not None
        body = b"".join(self._pieces)
        self._pieces = []
        self._rest = Rest(self.ask)
        self._rest.put(body[most:])
        self._give(Answer(*self._beginning, body[:most], self._rest))

    def _give(self, answer: Answer) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)
