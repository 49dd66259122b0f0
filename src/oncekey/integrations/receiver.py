"""A request's body, handed to the app once more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any

from oncekey.wire.body import Body


class Receiver:
    """An ASGI `receive`. That the client went away is only told after the answer is complete:
    the handler finishes, and its outcome is kept for the retry. Answers that are not kept have
    nobody left to be made for, so there `let_through` opens the server's own `receive`."""

    __slots__ = ("_chunks", "_finished", "_next", "_open", "_receive", "_waiting")

    def __init__(
        self, body: bytes | Body, receive: Callable[[], Awaitable[MutableMapping[str, Any]]]
    ) -> None:
        self._receive = receive
        self._chunks: Iterator[bytes] | None = None
        self._next: bytes | None
        if type(body) is bytes:
            self._next = body
        else:
            assert isinstance(body, Body)
            self._chunks = body.chunks()
            self._next = next(self._chunks, b"")
        self._waiting: list[asyncio.Future[None]] | None = None
        self._finished = False
        self._open = False

    async def __call__(self) -> MutableMapping[str, Any]:
        chunk = self._next
        if chunk is not None:
            following = self._next = next(self._chunks, None) if self._chunks else None
            return {"type": "http.request", "body": chunk, "more_body": following is not None}
        if not (self._finished or self._open):
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting = [*(self._waiting or ()), waiting]
            await waiting
        return {"type": "http.disconnect"} if self._finished else await self._receive()

    def finish(self) -> None:
        self._finished = True
        if self._waiting:
            self._wake(self._waiting)

    def let_through(self) -> None:
        self._open = True
        if self._waiting:
            self._wake(self._waiting)

    def _wake(self, waiting: list[asyncio.Future[None]]) -> None:
        self._waiting = None
        for each in waiting:
            if not each.done():
                each.set_result(None)
