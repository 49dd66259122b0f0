"""Runs a WSGI app under a claim: its answer is gathered, stored, and then given to the server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any

from oncekey.core.errors import ClaimLost, TerminalError
from oncekey.core.model import Headers
from oncekey.integrations.environ import Environ
from oncekey.integrations.gatherer import Flow, Gatherer
from oncekey.wire.body import Body
from oncekey.wire.problem import Response

Write = Callable[[bytes], object]
StartResponse = Callable[..., Write]
WsgiApp = Callable[[Environ, StartResponse], Iterable[bytes]]


class Whole(list[bytes]):
    """A complete answer. A list, so that servers can tell its length; closed after it is sent."""

    def __init__(self, chunks: Iterable[bytes], close: Callable[[], None]) -> None:
        super().__init__(chunks)
        self.close = close


class Closing:
    """An answer passed on as it is, with a request body to close behind it."""

    def __init__(self, iterable: Iterable[bytes], body: Body) -> None:
        self._iterable = iterable
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._iterable)

    def close(self) -> None:
        close_behind(self._iterable, self._body)


class Responder:
    """One app, one request. Also the `start_response` that the app is given."""

    def __init__(self, gatherer: Gatherer, start_response: StartResponse, body: Body) -> None:
        self._gatherer = gatherer
        self._start_response = start_response
        self._body = body
        self._iterable: Any = None
        self._status = ""
        self._lines: list[tuple[str, str]] = []
        self._write: Write | None = None

    def run(self, app: WsgiApp, environ: Environ) -> Iterable[bytes]:
        try:
            return self._run(app, environ)
        except BaseException as error:
            self._gatherer.give_up(error)
            self.close()
            raise

    def close(self) -> None:
        iterable, self._iterable = self._iterable, None
        close_behind(iterable, self._body)

    def _run(self, app: WsgiApp, environ: Environ) -> Iterable[bytes]:
        gatherer = self._gatherer
        chunks: Iterator[bytes] = iter(())
        first = b""
        try:
            self._iterable = app(environ, self._begin)
            if isinstance(self._iterable, list | tuple):
                gatherer.expect_whole()
            chunks = iter(self._iterable)
            first = self._gather(chunks)
        except TerminalError as error:
            if gatherer.concluded:
                raise
            gatherer.fail(error)
        except ClaimLost as error:
            gatherer.lose(error)
        if gatherer.replacement is not None:
            return self._replace(gatherer.replacement)
        self._send_lines()
        if gatherer.leaving:
            return Flow(first, chunks, gatherer, self.close)
        return Whole([first] if first else [], self.close)

    def _gather(self, chunks: Iterator[bytes]) -> bytes:
        """The whole answer, or its beginning when the rest is to follow while it is made."""
        gatherer = self._gatherer
        for chunk in chunks:
            self._check_started()
            out = gatherer.feed(chunk)
            if gatherer.leaving or gatherer.replacement is not None:
                return out
        self._check_started()
        return gatherer.finish()

    def _check_started(self) -> None:
        if not self._status:
            raise AssertionError("the app gave an answer before it called start_response")

    # -- what the app calls --------------------------------------------------------------

    def _begin(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Write:
        if self._status and exc_info is None:
            raise AssertionError("the app called start_response twice")
        try:
            if exc_info is not None and self._write is not None:
                raise exc_info[1].with_traceback(exc_info[2])
        finally:
            exc_info = None
        self._status, self._lines = status, list(headers)
        self._gatherer.start(int(status[:3]), encoded(headers))
        return self._take

    def _take(self, chunk: bytes) -> None:
        """The old way for an app to send: a call for each chunk."""
        out = self._gatherer.feed(chunk)
        if self._gatherer.leaving:
            self._send_lines()(out)

    # -- what the server gets ------------------------------------------------------------

    def _send_lines(self) -> Write:
        if self._write is None:
            lines = [*self._lines, *decoded(self._gatherer.marks)]
            self._write = self._start_response(self._status, lines)
        return self._write

    def _replace(self, response: Response) -> Iterable[bytes]:
        self._start_response(status_line(response.status), decoded(response.headers))
        return Whole([response.body], self.close)


def close_behind(iterable: Any, body: Body) -> None:
    try:
        if hasattr(iterable, "close"):
            iterable.close()
    finally:
        body.close()


def respond(start_response: StartResponse, response: Response) -> list[bytes]:
    start_response(status_line(response.status), decoded(response.headers))
    return [response.body] if response.body else []


def status_line(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} Unknown"


def encoded(lines: Iterable[tuple[str, str]]) -> Headers:
    return tuple([(name.encode("latin-1"), value.encode("latin-1")) for name, value in lines])


def decoded(headers: Headers) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
