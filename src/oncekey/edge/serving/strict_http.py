"""HTTP/1.1 that means one thing only: what another reader could take for another request is
refused, and so is a head that takes up too much. All else is uvicorn's."""

from __future__ import annotations

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from oncekey.wire.problem import Response, problem

MAX_HEAD = 64 << 10
MAX_LINES = 128
NEVER = float("inf")

_LEAVES = frozenset({b"upgrade", b"http2-settings"})
_VERSIONS = frozenset({"1.1", "1.0"})
_TOO_LARGE = problem("request-head-too-large")
_MALFORMED = problem("request-malformed")


class Ambiguous(ValueError):
    """Raised while a head is read; the parser tells it on as an error of its own."""


class StrictHttp(HttpToolsProtocol):
    """Whoever serves calls `is_request` when a head is whole, and answers what `refuse` is told."""

    begun = False
    """Whether a head is being read."""
    between = True
    """Whether the parser is: all of a request was read, and nothing of the next."""
    is_plain = False
    """Whether the head just read asks for a protocol that nobody here speaks: it is read again as
    if it did not, because the parser takes what follows for that protocol."""
    hosts = 0
    url = b""
    _came = _chunk = 0

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        left = self._feed(data)
        while left is not None:
            self._feed(self._plain_head())
            left = self._feed(left) if left else None

    def _feed(self, data: bytes | memoryview) -> memoryview | None:
        """What follows a head that must be read again, when there is one in `data`."""
        self._chunk = len(data)
        # Of a head that began together with something else, that first part is not counted.
        self._came = self._came + len(data) if self.begun else 0
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self.is_plain:
                return memoryview(data)[upgrade.args[0] :]
            self.handle_websocket_upgrade()
        except httptools.HttpParserError:
            self.between = False
            self.refuse(_TOO_LARGE if self._is_large else _MALFORMED)
        else:
            if self.begun and self._came > MAX_HEAD:
                self.refuse(_TOO_LARGE)
        return None

    def refuse(self, answer: Response) -> None:
        """Nothing more is read from this connection."""
        raise NotImplementedError

    # -- the head ------------------------------------------------------------------------

    def begin_head(self) -> None:
        self.begun = True
        self.between = False
        self.is_plain = False
        self.hosts = self._came = 0

    def look_at(self, name: bytes, value: bytes) -> None:
        """Two readers could disagree on these lines."""
        if name == b"host":
            self.hosts += 1
        elif name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            raise Ambiguous("Transfer-Encoding says more than: chunked")

    def is_request(self) -> bool:
        """Whether there is something to answer. Raises `Ambiguous`."""
        parser = self.parser
        version = parser.get_http_version()
        if self.hosts != 1 and (self.hosts or version == "1.1"):
            raise Ambiguous("there is one Host")
        if version not in _VERSIONS or b"#" in self.url or self._is_large:
            raise Ambiguous("not a head of HTTP/1.1 that is taken")
        self.begun = False
        if self.transport.is_closing():
            # It comes after the last one that this connection is for.
            return False
        if parser.should_upgrade() and not self._should_upgrade():
            if parser.get_method() == b"CONNECT":
                raise Ambiguous("there is nobody to connect to")
            self.is_plain = True
        return not self.is_plain

    @property
    def _is_large(self) -> bool:
        if len(self.headers or ()) > MAX_LINES:
            return True
        if self._came + self._chunk <= MAX_HEAD:
            return False
        lines = sum([len(name) + len(value) + 4 for name, value in self.headers or ()])
        return len(self.url) + lines > MAX_HEAD

    def _plain_head(self) -> bytes:
        """The head just read without what asks for another protocol, for a parser that is new."""
        parser = self.parser
        version = parser.get_http_version().encode()
        head = [parser.get_method(), b" ", self.url, b" HTTP/", version, b"\r\n"]
        for name, value in self.headers:
            if name not in _LEAVES:
                head += (name, b": ", value, b"\r\n")
        self.parser = httptools.HttpRequestParser(self)
        return b"".join([*head, b"\r\n"])
