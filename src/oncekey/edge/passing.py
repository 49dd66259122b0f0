"""An answer that is only passed on, and the exchange it ends, as the short way has them."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

from oncekey.core.errors import UpstreamError
from oncekey.core.model import Headers, make
from oncekey.edge.asked import Answer, Asked, Pairs
from oncekey.edge.cleaning import from_upstream
from oncekey.edge.proxy import Admitted, Proxy
from oncekey.edge.sending import Listening, as_it_comes
from oncekey.wire.problem import Response, problem_of


class Writes(Protocol):
    """Whoever has the connection to the client."""

    def write(self, answer: Response | Answer, asked: Asked | None, cycle: Any) -> None: ...

    def begin(self, work: Awaitable[Any], asked: Asked, cycle: Any) -> None: ...


class _Event:
    def set(self) -> None:
        """Nobody waits for it here."""


class Cycle:
    """What the protocol asks about an exchange that is under way."""

    __slots__ = ("disconnected", "keep_alive", "knows_chunks", "response_complete")
    message_event = _Event()
    response_started = False

    def __init__(self, keep_alive: bool, *, knows_chunks: bool = True) -> None:
        self.keep_alive = keep_alive
        self.knows_chunks = knows_chunks
        """Whether the client does: one of HTTP/1.0 reads until the connection ends."""
        self.disconnected = False
        self.response_complete = False


class Passing(Listening):
    """An answer that is only passed on: written when it is told, without a task, unless it comes
    piece by piece."""

    __slots__ = ("_admitted", "_asked", "_cycle", "_protocol", "_proxy")

    def __init__(
        self, protocol: Writes, proxy: Proxy, admitted: Admitted, asked: Asked, cycle: Any
    ) -> None:
        super().__init__(as_it_comes)
        self._protocol = protocol
        self._proxy = proxy
        self._admitted = admitted
        self._asked = asked
        self._cycle = cycle

    def whole(self, status: int, headers: Headers, body: bytes) -> None:
        lines = from_upstream(headers, self._admitted.route.origin)
        self._protocol.write(make(Answer, (status, lines, body, None)), self._asked, self._cycle)

    def began(self, status: int, headers: Headers | Pairs) -> None:
        super().began(status, from_upstream(headers, self._admitted.route.origin))
        self._protocol.begin(self.answer(), self._asked, self._cycle)

    def failed(self, error: UpstreamError) -> None:
        if self.has_begun:
            super().failed(error)
        else:
            self._proxy.tell(error, self._asked)
            self._protocol.write(problem_of(error), self._asked, self._cycle)
