"""A request's body, handed to the app once more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from oncekey.wire.body import Body


class Receiver:
    """An ASGI `receive`. That the client went away is only told after the answer is complete:
    the handler finishes, and its outcome is kept for the retry."""

    __slots__ = ("_chunks", "_finished", "_next", "_waiting")

    def __init__(self, body: bytes | Body) -> None:
        self._chunks: Iterator[bytes] = iter(())
        self._next: bytes | None = None
        if isinstance(body, bytes):
            self._next = body
        else:
            self._chunks = body.chunks()
            self._next = next(self._chunks, b"")
        self._waiting: list[asyncio.Future[dict[str, Any]]] = []
        self._finished = False

    async def __call__(self) -> dict[str, Any]:
        chunk = self._next
        if chunk is not None:
            following = self._next = next(self._chunks, None)
            return {"type": "http.request", "body": chunk, "more_body": following is not None}
        if self._finished:
            return {"type": "http.disconnect"}
        waiting: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        return await waiting

    def finish(self) -> None:
        self._finished = True
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result({"type": "http.disconnect"})
