"""An answer of the service behind: gathered while it may be kept, handed on as it comes else."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Any

from oncekey.core.errors import UpstreamError
from oncekey.core.model import Headers, make
from oncekey.edge.asked import Answer, Pairs

Gathers = Callable[[int, Headers | Pairs], int]
"""How many bytes of an answer are gathered before it is handed on, by its status and headers."""


def as_it_comes(_: int, __: Headers | Pairs) -> int:
    """Nothing of it is kept: it is handed on at once."""
    return 0


_HIGH_WATER = 256 << 10
_LOW_WATER = 64 << 10


class Listening:
    """Told by an upstream of the answer to one request; awaited by whoever asked."""

    __slots__ = (
        "_answer", "_arrived", "_chunks", "_ended", "_error", "_gathers", "_head", "_paused",
        "_size", "_waiting", "ask",
    )  # fmt: skip

    def __init__(self, gathers: Gathers) -> None:
        # Made by whoever waits: an answer may be told without.
        self._arrived: asyncio.Future[None] | None = None
        self._answer: Answer | None = None
        self._gathers = gathers
        self._head: tuple[int, Headers | Pairs] | None = None
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._paused = False
        self._error: UpstreamError | None = None
        self._waiting: asyncio.Future[None] | None = None
        self.ask: Any = None

    async def answer(self) -> Answer:
        """Raises what the upstream failed with, when it failed before anything was handed on."""
        if self._answer is None and self._error is None:
            self._arrived = asyncio.get_running_loop().create_future()
            try:
                await self._arrived
            except BaseException:
                self.ask.abandon()
                raise
        if self._answer is not None:
            return self._answer
        assert self._error is not None
        raise self._error

    @property
    def has_begun(self) -> bool:
        return self._head is not None

    # -- what the upstream tells ---------------------------------------------------------

    def whole(self, status: int, headers: Headers, body: bytes) -> None:
        self._arrive(make(Answer, (status, headers, body, None)))

    def began(self, status: int, headers: Headers | Pairs) -> None:
        self._head = (status, headers)
        if self._gathers(status, headers) <= 0:
            self._hand_on()

    def chunk(self, data: bytes) -> None:
        self._chunks.append(data)
        self._size += len(data)
        if self._answer is None:
            assert self._head is not None
            if self._size > self._gathers(*self._head):
                self._hand_on()
        elif self._size > _HIGH_WATER and not self._paused:
            self._paused = True
            self.ask.pause()
        self._wake()

    def ended(self) -> None:
        self._ended = True
        if self._answer is None:
            assert self._head is not None
            self._arrive(Answer(*self._head, b"".join(self._chunks)))
        self._wake()

    def failed(self, error: UpstreamError) -> None:
        self._error = error
        if self._answer is None:
            self._arrive(None)
        self._wake()

    def _arrive(self, answer: Answer | None) -> None:
        self._answer = answer
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    # -- the rest of an answer that is handed on -----------------------------------------

    def _hand_on(self) -> None:
        assert self._head is not None
        body = b"".join(self._chunks)
        self._chunks.clear()
        self._size = 0
        self._arrive(Answer(*self._head, body, self._rest()))

    async def _rest(self) -> AsyncGenerator[bytes, None]:
        try:
            while True:
                while self._chunks:
                    chunk = self._chunks.popleft()
                    self._size -= len(chunk)
                    if self._paused and self._size < _LOW_WATER:
                        self._paused = False
                        self.ask.resume()
                    yield chunk
                if self._error is not None:
                    raise self._error
                if self._ended:
                    return
                self._waiting = asyncio.get_running_loop().create_future()
                await self._waiting
        finally:
            if not self._ended and self._error is None:
                self.ask.abandon()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
