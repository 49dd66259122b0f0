"""Answers that no envelope carries: handed from the loop of the store to that of the edge, when
both are in one process."""

from __future__ import annotations

import asyncio
import threading
from typing import NamedTuple

from oncekey.edge.asked import Answer, Following


class _Left(NamedTuple):
    answer: Answer
    loop: asyncio.AbstractEventLoop


class Handing:
    """Callers of this process are known by their nonces."""

    def __init__(self) -> None:
        self._wanted: dict[str, _Left | None] = {}
        # Two loops meet here: what is left for a caller who goes at that moment must not stay.
        self._lock = threading.Lock()

    def want(self, nonce: str) -> None:
        self._wanted[nonce] = None

    def leave(self, nonce: str, answer: Answer) -> bool:
        """On the loop of the store; False when the caller is not here, or not any more."""
        with self._lock:
            if nonce not in self._wanted:
                return False
            self._wanted[nonce] = _Left(answer, asyncio.get_running_loop())
            return True

    def take(self, nonce: str) -> Answer | None:
        """On the loop of the edge, when its outcome is kept."""
        with self._lock:
            left = self._wanted.pop(nonce, None)
        if left is None or left.answer.rest is None:
            return None
        return left.answer._replace(rest=_Bridged(left.answer.rest, left.loop))

    def forget(self, nonce: str) -> None:
        """Nobody waits for it."""
        with self._lock:
            left = self._wanted.pop(nonce, None)
        if left is not None and left.answer.rest is not None:
            asyncio.run_coroutine_threadsafe(left.answer.rest.aclose(), left.loop)


class _Bridged:
    """What follows, read on its own loop."""

    def __init__(self, rest: Following, loop: asyncio.AbstractEventLoop) -> None:
        self._rest = rest
        self._loop = loop

    def __aiter__(self) -> _Bridged:
        return self

    async def __anext__(self) -> bytes:
        piece = await asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(self._next(), self._loop)
        )
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._rest.aclose(), self._loop))

    async def _next(self) -> bytes | None:
        try:
            return await anext(self._rest)
        except StopAsyncIteration:
            return None
