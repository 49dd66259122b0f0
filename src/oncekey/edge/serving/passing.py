"""An answer that is only passed on, and the exchange it ends, as the short way has them."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

from oncekey.core.errors import UpstreamError
from oncekey.core.events import Seen
from oncekey.core.model import Headers, make
from oncekey.edge.asked import Answer, Asked
from oncekey.edge.policy import EdgeRoute
from oncekey.edge.proxy import Proxy
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

    __slots__ = ("disconnected", "keep_alive", "knows_chunks", "response_complete", "seen")
    message_event = _Event()
    response_started = False

    def __init__(self, keep_alive: bool, *, knows_chunks: bool = True) -> None:
        self.keep_alive = keep_alive
        self.knows_chunks = knows_chunks
        """Whether the client does: one of HTTP/1.0 reads until the connection ends."""
        self.disconnected = False
        self.response_complete = False
        self.seen: Seen | None = None
        """The request, for those who watch; the answer ends it."""


class Passing:
    """An answer that is only passed on: written when it is told, without a task, unless it comes
    piece by piece."""

    __slots__ = ("_asked", "_cycle", "_listening", "_protocol", "_proxy", "_route", "ask")

    def __init__(
        self, protocol: Writes, proxy: Proxy, route: EdgeRoute, asked: Asked, cycle: Any
    ) -> None:
        self._protocol = protocol
        self._proxy = proxy
        self._route = route
        self._asked = asked
        self._cycle = cycle
        self._listening: Listening | None = None
        """To an answer that comes piece by piece."""
        self.ask: Any = None

    def whole(self, status: int, headers: Headers, body: bytes) -> None:
        lines = self._route.cleaned(headers)
        self._protocol.write(make(Answer, (status, lines, body, None)), self._asked, self._cycle)

    def began(self, status: int, headers: Headers) -> None:
        self._listening = listening = Listening(as_it_comes)
        listening.ask = self.ask
        listening.began(status, self._route.cleaned(headers))
        self._protocol.begin(listening.answer(), self._asked, self._cycle)

    def chunk(self, data: bytes) -> None:
        assert self._listening is not None
        self._listening.chunk(data)

    def ended(self) -> None:
        assert self._listening is not None
        self._listening.ended()

    def failed(self, error: UpstreamError) -> None:
        if self._listening is not None:
            self._listening.failed(error)
        else:
            self._proxy.tell(error, self._asked)
            self._protocol.write(problem_of(error), self._asked, self._cycle)
