"""An answer of the service behind: gathered while it may be kept, handed on as it comes else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from oncekey.core.errors import UpstreamError, UpstreamUncertain, UpstreamUnreachable
from oncekey.core.model import Headers, make
from oncekey.edge.asked import Answer, Pairs
from oncekey.upstream.ask import Listener
from oncekey.upstream.rest import Rest

Gathers = Callable[[int, Headers | Pairs], int]
"""How many bytes of an answer are gathered before it is handed on, by its status and headers."""


class Listens(Listener, Protocol):
    """Who listens, and may say that nobody does any more."""

    ask: Any


_STOPPED = "the answer of the service behind was waited for no longer"


def as_it_comes(_: int, __: Headers | Pairs) -> int:
    """Nothing of it is kept: it is handed on at once."""
    return 0


def go_on() -> None:
    """A server that stops cancels those it does not wait for any longer. There is still something
    to do: to keep what is known of the request, and to tell it."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


class Listening:
    """Told by an upstream of the answer to one request; awaited by whoever asked."""

    __slots__ = (
        "_answer", "_arrived", "_error", "_gathers", "_head", "_most", "_pieces", "_rest", "_size",
        "ask",
    )  # fmt: skip

    def __init__(self, gathers: Gathers) -> None:
        # Made by whoever waits: an answer may be told without.
        self._arrived: asyncio.Future[None] | None = None
        self._answer: Answer | None = None
        self._error: UpstreamError | None = None
        self._gathers = gathers
        self._head: tuple[int, Headers | Pairs] | None = None
        self._most = 0
        self._pieces: list[bytes] = []
        self._size = 0
        self._rest: Rest | None = None
        """What follows, once the answer is handed on."""
        self.ask: Any = None

    async def answer(self) -> Answer:
        """Raises what the upstream failed with, when it failed before anything was handed on."""
        if self._answer is None and self._error is None:
            await self._wait()
        if self._answer is not None:
            return self._answer
        assert self._error is not None
        raise self._error

    async def _wait(self) -> None:
        self._arrived = asyncio.get_running_loop().create_future()
        try:
            await self._arrived
        except asyncio.CancelledError:
            go_on()
            if self._answer is None and self._error is None:
                sent = self.ask.connection is not None
                self.ask.abandon()
                self._error = UpstreamUncertain(_STOPPED) if sent else UpstreamUnreachable(_STOPPED)

    # -- what the upstream tells ---------------------------------------------------------

    def whole(self, status: int, headers: Headers, body: bytes) -> None:
        self._arrive(make(Answer, (status, headers, body, None)))

    def began(self, status: int, headers: Headers | Pairs) -> None:
        self._head = (status, headers)
        self._most = self._gathers(status, headers)
        if self._most <= 0:
            self._hand_on()

    def chunk(self, data: bytes) -> None:
        if self._rest is not None:
            self._rest.put(data)
            return
        self._pieces.append(data)
        self._size += len(data)
        if self._size > self._most:
            self._hand_on()

    def ended(self) -> None:
        if self._rest is not None:
            self._rest.close(True)
        else:
            assert self._head is not None
            self._arrive(Answer(*self._head, b"".join(self._pieces)))

    def failed(self, error: UpstreamError) -> None:
        if self._rest is not None:
            self._rest.close(error)
        else:
            self._error = error
            self._arrive(None)

    def _hand_on(self) -> None:
        assert self._head is not None
        self._rest = Rest(self.ask)
        body = b"".join(self._pieces)
        self._pieces = []
        self._arrive(Answer(*self._head, body, self._rest))

    def _arrive(self, answer: Answer | None) -> None:
        self._answer = answer
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)
