"""The head of an answer, and where its body ends. Pure, and strict: what can be read in two ways is
refused, for then two readers could disagree about where the next answer begins."""

from __future__ import annotations

from typing import NamedTuple

import httptools

from oncekey.core.model import Headers
from oncekey.wire.headers import HOP_BY_HOP

END = b"\r\n\r\n"
CHUNKED = -1
UNTIL_CLOSED = -2

_VERSIONS = (b"HTTP/1.1 ", b"HTTP/1.0 ")
_BODILESS = frozenset({204, 304})


class Malformed(ValueError):
    """An answer that breaks the rules of HTTP/1.1, or ends too early."""


class Head(NamedTuple):
    status: int
    headers: Headers
    """Names in lower case, without those of the connection."""
    length: int
    """Of the body in bytes, or `CHUNKED`, or `UNTIL_CLOSED`."""
    keeps: bool
    """Whether the connection can carry another request."""
    patience: float | None
    """For how many seconds the upstream says that it keeps an idle connection."""

    @property
    def interim(self) -> bool:
        return self.status < 200


class _Lines:
    """What httptools calls while it reads a head."""

    __slots__ = ("pairs",)

    def __init__(self) -> None:
        self.pairs: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.pairs.append((name.lower(), value.rstrip(b" \t")))


def head_of(raw: bytes) -> Head:
    """`raw`: from the first byte to the empty line, and no byte more."""
    if not raw.startswith(_VERSIONS) or b"\0" in raw:
        raise Malformed("the status line is not one of HTTP/1.0 or HTTP/1.1")
    lines = _Lines()
    parser = httptools.HttpResponseParser(lines)
    try:
        parser.feed_data(raw)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
        raise Malformed(f"the head of the answer: {error}") from None
    status = parser.get_status_code()
    if not 100 <= status <= 599 or status == 101:
        raise Malformed(f"the status {status} answers nothing that was asked")
    modern = raw.startswith(_VERSIONS[0])
    return _head(status, lines.pairs, modern=modern)


def _head(status: int, pairs: list[tuple[bytes, bytes]], *, modern: bool) -> Head:
    words: set[bytes] = set()
    patience = None
    for name, value in pairs:
        if name == b"connection":
            words.update(word.strip(b" \t") for word in value.lower().split(b","))
        elif name == b"keep-alive":
            patience = _patience_in(value)
    dropped = HOP_BY_HOP | words
    headers = tuple([pair for pair in pairs if pair[0] not in dropped])
    length = 0 if status in _BODILESS or status < 200 else _length(pairs, modern=modern)
    keeps = b"close" not in words and (modern or b"keep-alive" in words)
    return Head(status, headers, length, keeps and length != UNTIL_CLOSED, patience)


def _length(pairs: list[tuple[bytes, bytes]], *, modern: bool) -> int:
    lengths = [value for name, value in pairs if name == b"content-length"]
    codings = [value for name, value in pairs if name == b"transfer-encoding"]
    if codings:
        # Any other coding would have to be undone here; a second reader may not know it at all.
        if lengths or not modern or [each.lower() for each in codings] != [b"chunked"]:
            raise Malformed("Transfer-Encoding is alone in HTTP/1.1 and says only: chunked")
        return CHUNKED
    if not lengths:
        return UNTIL_CLOSED
    if len(lengths) > 1 or not lengths[0].isdigit() or len(lengths[0]) > 18:
        raise Malformed("Content-Length is one line with one number")
    return int(lengths[0])


def _patience_in(value: bytes) -> float | None:
    for part in value.lower().split(b","):
        name, _, number = part.strip(b" \t").partition(b"=")
        if name == b"timeout" and number.isdigit() and len(number) < 9:
            return float(number)
    return None


class Heads:
    """Heads that were read before: answers of one kind in the same second have the same one."""

    __slots__ = ("_most", "known")

    def __init__(self, most: int = 256) -> None:
        self.known: dict[bytes, Head] = {}
        self._most = most

    def read(self, raw: bytes) -> Head:
        head = self.known.get(raw)
        if head is not None:
            return head
        head = head_of(raw)
        if len(raw) <= 1024 and not head.interim:
            if len(self.known) >= self._most:
                self.known.clear()
            self.known[raw] = head
        return head
