"""One request on its way, and who listens for what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Iterable
from typing import TYPE_CHECKING, Protocol

from oncekey.core.errors import UpstreamError
from oncekey.core.model import Headers

if TYPE_CHECKING:
    from oncekey.edge.upstream.connection import Connection
    from oncekey.edge.upstream.pouring import Pouring

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


class Ask:
    """A handle on a request. After its end all of it does nothing."""

    __slots__ = (
        "began",
        "bodiless",
        "connection",
        "deadline",
        "large",
        "listener",
        "loop",
        "over",
        "payload",
        "pouring",
        "since",
        "timeout",
    )

    def __init__(
        self,
        listener: Listener,
        loop: asyncio.AbstractEventLoop,
        since: float,
        timeout: float,
        *,
        bodiless: bool,
    ) -> None:
        self.listener = listener
        self.loop = loop
        self.since = since
        self.timeout = timeout
        self.deadline = since + timeout
        self.bodiless = bodiless
        """It is a HEAD: its answer has no body."""
        self.payload = b""
        """What is written when there is a connection."""
        self.large = b""
        """What is written behind it: a body too large to be copied there."""
        self.connection: Connection | None = None
        self.pouring: Pouring | None = None
        """Who writes a body that comes in pieces."""
        self.began = False
        """The listener knows the head, and not yet the end."""
        self.over = False

    def pause(self) -> None:
        """Read no more of the answer for now. While it is paused, no time runs."""
        if self.connection is not None:
            self.deadline = NEVER
            self.connection.pause_reading()

    def resume(self) -> None:
        if self.connection is not None:
            self.prolong()
            self.connection.resume_reading()

    def abandon(self) -> None:
        """Nobody wants the answer any more. The listener is told nothing of it."""
        self.finish()
        if self.connection is not None:
            self.connection.drop(self)

    def prolong(self) -> None:
        """Something moved: the time begins anew."""
        self.deadline = self.loop.time() + self.timeout

    def fail(self, error: UpstreamError) -> None:
        if not self.over:
            self.finish()
            self.tell_failure(error)

    def finish(self) -> None:
        self.over = True
        if self.pouring is not None:
            self.pouring.stop()

    def tell_failure(self, error: UpstreamError) -> None:
        try:
            self.listener.failed(error)
        except Exception as mistake:  # noqa: BLE001 - a listener's mistake is the listener's alone
            self.mistaken(mistake)

    def mistaken(self, error: Exception) -> None:
        """A listener raised: told to the loop, so that the connection does not suffer for it."""
        context = {"message": "the listener of an upstream raised", "exception": error}
        self.loop.call_exception_handler(context)
