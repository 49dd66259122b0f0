"""One request on its way, and who listens for what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Iterable
from time import monotonic
from typing import TYPE_CHECKING, Protocol

import msgspec

from oncekey.core.errors import UpstreamError
from oncekey.core.model import Headers

if TYPE_CHECKING:
    from oncekey.upstream.connection import Connection
    from oncekey.upstream.pouring import Pouring

Body = bytes | Iterable[bytes] | AsyncIterable[bytes]
NEVER = float("inf")


class Listener(Protocol):
    """Told on the event loop, never before `ask` has returned: `whole`, or `began`, then `chunk`
    for each piece, then `ended`; or `failed`, which may also come after `began`."""

    def whole(self, status: int, headers: Headers, body: bytes) -> None: ...
    def began(self, status: int, headers: Headers) -> None: ...
    def chunk(self, data: bytes) -> None: ...
    def ended(self) -> None: ...
    def failed(self, error: UpstreamError) -> None: ...


class Ask(msgspec.Struct, eq=False):
    """A handle on a request. After the end of the answer it does nothing."""

    listener: Listener
    payload: bytes
    """What is written when there is a connection."""
    method: bytes
    timeout: float
    since: float
    deadline: float
    connection: Connection | None = None
    pouring: Pouring | None = None
    """Who writes a body that comes in pieces."""
    large: bytes = b""
    """A body that is too large to be copied behind its head."""
    began: bool = False
    over: bool = False

    def restart(self) -> None:
        """Its time begins now."""
        self.since = now = monotonic()
        self.deadline = now + self.timeout

    def pause(self) -> None:
        """Read no more of the answer for now. Until it is resumed, no time runs."""
        if self.connection is not None:
            self.deadline = NEVER
            self.connection.pause_reading()

    def resume(self) -> None:
        if self.connection is not None:
            self.deadline = monotonic() + self.timeout
            self.connection.resume_reading()

    def abandon(self) -> None:
        """Nobody wants the answer any more. The listener hears nothing of it."""
        if not self.over:
            self.finish()
            if self.connection is not None:
                self.connection.drop()

    def prolong(self) -> None:
        """Something moved: it has all of its time again."""
        if self.deadline != NEVER:
            self.deadline = monotonic() + self.timeout

    def fail(self, error: UpstreamError) -> None:
        if self.over:
            return
        self.finish()
        try:
            self.listener.failed(error)
        except Exception as mistake:  # noqa: BLE001 - a listener's mistake is the listener's alone
            tell_mistake(mistake)

    def finish(self) -> None:
        self.over = True
        if self.pouring is not None:
            self.pouring.stop()


def tell_mistake(error: Exception) -> None:
    """A listener raised: told to the loop, so that the connection does not suffer for it."""
    context = {"message": "the listener of an upstream raised", "exception": error}
    asyncio.get_running_loop().call_exception_handler(context)
