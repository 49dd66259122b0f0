"""The head of a request, and its framing. Refuses whatever would end a line or a body early."""

from __future__ import annotations

import re
from collections.abc import Sequence

from oncekey.core.errors import InvalidInput
from oncekey.upstream.address import Address
from oncekey.wire.headers import HOP_BY_HOP

LAST_CHUNK = b"0\r\n\r\n"

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_TARGET = re.compile(rb"/[!\"$-~]*").fullmatch
_CONTROLS = bytes([*range(9), *range(10, 32), 127])
_LINE = b": ".join
# These have no body unless there is one; of all others an upstream wants to hear that it is empty.
_BODILESS = frozenset({b"GET", b"HEAD", b"DELETE", b"OPTIONS", b"TRACE"})
_WRITTEN_HERE = HOP_BY_HOP | {b"host", b"content-length", b"expect"}
_MOST_KNOWN = 1024
# Clients make up the names of headers.
_LONGEST_KNOWN = 64


class RequestWriter:
    """Requests to one address."""

    __slots__ = ("_base", "_framings", "_known", "_starts", "_version")

    def __init__(self, address: Address) -> None:
        self._base = address.base
        self._version = b" HTTP/1.1\r\nhost: " + address.authority + b"\r\n"
        self._starts: dict[bytes, bytes] = {}
        self._known: set[bytes] = set()
        self._framings: dict[int | None, bytes] = {}

    def start(self, method: bytes, target: bytes, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
        """Of its head: the first line, and `headers`; for `request` to go on from."""
        start = self._starts.get(method) or self._start(method)
        if not _TARGET(target):
            raise InvalidInput("the target of a request is a path of printable ASCII, from its /")
        return b"".join((start, target, self._version, self.lines(headers)))

    def lines(self, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
        if not headers:
            return b""
        known = self._known
        for name, _ in headers:
            if name not in known:
                self._check_name(name)
        lines = b"\r\n".join(map(_LINE, headers))
        # Between the lines there are two each; any other would end a line early.
        if len(lines.translate(None, _CONTROLS)) != len(lines) - 2 * len(headers) + 2:
            raise InvalidInput("a header has a control character in its value: leave it out")
        return lines + b"\r\n"

    def request(
        self,
        method: bytes,
        start: bytes,
        headers: Sequence[tuple[bytes, bytes]],
        length: int | None,
        body: bytes = b"",
    ) -> bytes:
        """All of the head, and `body` behind it. `length`: of all of the body, None when not known
        yet. `headers` are those that `start` has not."""
        framing = self._framings.get(length) or self._framing(method, length)
        if headers:
            return b"".join((start, self.lines(headers), framing, body))
        return b"".join((start, framing, body))

    def _start(self, method: bytes) -> bytes:
        if not _TOKEN(method) or method == b"CONNECT":
            raise InvalidInput("the method of a request is a word such as POST, and not CONNECT")
        start = method + b" " + self._base
        if len(self._starts) < _MOST_KNOWN:
            self._starts[method] = start
        return start

    def _framing(self, method: bytes, length: int | None) -> bytes:
        framing = framing_of(method, length)
        # How an empty body is told depends on the method.
        if length and len(self._framings) < _MOST_KNOWN:
            self._framings[length] = framing
        return framing

    def _check_name(self, name: bytes) -> None:
        if not _TOKEN(name):
            raise InvalidInput("the name of a header has a character that no name may have")
        if name.lower() in _WRITTEN_HERE:
            raise InvalidInput(f"the header {name.decode()} is the connection's own: leave it out")
        if len(self._known) < _MOST_KNOWN and len(name) <= _LONGEST_KNOWN:
            self._known.add(name)


def framing_of(method: bytes, length: int | None) -> bytes:
    """The lines that say where the body ends, and the empty line."""
    if length is None:
        return b"transfer-encoding: chunked\r\n\r\n"
    if length < 0:
        raise InvalidInput("the length of a body is not negative")
    if not length and method in _BODILESS:
        return b"\r\n"
    return b"content-length: %d\r\n\r\n" % length


def chunk_of(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)
