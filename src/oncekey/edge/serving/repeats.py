"""Requests that look like the one before them on their connection: only what is new is read.

A client that keeps its connection says nearly the same in every head. What is the same to the byte
was read strictly once, and so was all that follows from it: the route, the lines for the service
behind, where the credential is. It holds for one connection, and is gone with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from oncekey.core.model import make
from oncekey.edge.asked import Asked, Pairs
from oncekey.wire.headers import KEY, REQUEST_ID, Lines, lines_of

LENGTH = b"content-length"
_END = b"\r\n\r\n"
_LONGEST_HEAD = 8 << 10
# What a client says anew each time, and how it looks when nobody could read it in two ways.
_FRESH: dict[bytes, Callable[[bytes], object]] = {
    KEY: re.compile(rb"[!-~]{1,255}").fullmatch,
    LENGTH: re.compile(rb"0|[1-9][0-9]{0,4}").fullmatch,
    REQUEST_ID: re.compile(rb"[!-~]{1,128}").fullmatch,
    b"traceparent": re.compile(rb"[0-9a-f-]{1,64}").fullmatch,
}
_KEEPING = (b"keep-alive",)


class _Piece(NamedTuple):
    """What is the same, up to a value that is not."""

    before: bytes
    fits: Callable[[bytes], object]


class Again(NamedTuple):
    """What a request says anew: a value for each fresh line, and its body."""

    values: list[bytes]
    body: bytes


class Repeat:
    """A request that was read strictly, as the pattern of those that repeat it."""

    __slots__ = (
        "_asked", "_end", "_handed_on", "_key", "_length", "_lines", "_names", "_pieces",
        "_places", "_request_id", "credential", "same", "starts", "told",
    )  # fmt: skip

    def __init__(
        self, asked: Asked, pieces: list[_Piece], end: bytes, places: list[int], credential: bytes
    ) -> None:
        names = [asked.headers[place][0] for place in places]
        self._pieces, self._end = pieces, end
        self._places, self._names = places, names
        self._length = _place_of(LENGTH, names)
        self._key = _place_of(KEY, names)
        self._request_id = _place_of(REQUEST_ID, names)
        self._handed_on = [
            (place, name) for place, name in enumerate(names) if name not in (KEY, LENGTH)
        ]
        self._asked = asked
        self._lines = lines_of(asked.headers)
        self.credential = credential
        """What `Identities.credential` said of it."""
        others = [pair for place, pair in enumerate(asked.headers) if place not in places]
        self.same = asked._replace(headers=others)
        """What is the same in all of them."""
        self.starts: dict[str, bytes] = {}
        """The same as the service behind is told it, by namespace."""
        self.told: tuple[str, bytes] | None = None
        """Of a request for a decision: method and target of the request it is about."""

    def read(self, data: bytes) -> Again | None:
        """What is new in `data`, when it is one whole request that repeats this one."""
        at = 0
        values: list[bytes] = []
        for before, fits in self._pieces:
            if not data.startswith(before, at):
                return None
            at += len(before)
            end = data.find(b"\r", at)
            value = data[at:end]
            if end < 0 or not fits(value):
                return None
            values.append(value)
            at = end
        if not data.startswith(self._end, at):
            return None
        body = data[at + len(self._end) :]
        length = 0 if self._length is None else int(values[self._length])
        return make(Again, (values, body)) if len(body) == length else None

    def asked(self, values: list[bytes]) -> Asked:
        """The request that says this now."""
        method, path, raw_path, query, headers, peer, scheme, _ = self._asked
        headers = headers.copy()
        for place, name, value in zip(self._places, self._names, values, strict=True):
            headers[place] = (name, value)
        again = (self, values)
        return make(Asked, (method, path, raw_path, query, headers, peer, scheme, again))

    def keys(self, values: list[bytes]) -> list[bytes]:
        return self._lines.keys if self._key is None else [values[self._key]]

    def lines(self, values: list[bytes]) -> Lines:
        """As `lines_of` finds them."""
        _, content_type, request_id, credentials = self._lines
        keys = self.keys(values)
        if self._request_id is not None:
            request_id = values[self._request_id]
        return make(Lines, (keys, content_type, request_id, credentials))

    def fresh(self, values: list[bytes]) -> list[tuple[bytes, bytes]]:
        """The new lines that are for the service behind."""
        return [(name, values[place]) for place, name in self._handed_on]


def learned(data: bytes, asked: Asked, body: bytes, credential: bytes) -> Repeat | None:
    """The pattern of a request that came as `data`, alone and whole, when it makes a good one."""
    size = len(data) - len(body)
    if size > _LONGEST_HEAD or data.find(_END) != size - len(_END):
        return None
    first, *lines = data[: size - len(_END)].split(b"\r\n")
    if first != b"%b %b HTTP/1.1" % (asked.method.encode(), asked.target):
        return None
    if len(lines) != len(asked.headers):
        return None
    pieces: list[_Piece] = []
    places: list[int] = []
    same = first + b"\r\n"
    for place, (line, (name, value)) in enumerate(zip(lines, asked.headers, strict=True)):
        if not _says(line, name, value):
            return None
        fits = _FRESH.get(name)
        if fits is None:
            same += line + b"\r\n"
            continue
        start = line[: len(name)] + b": "
        if line != start + value or not fits(value) or _is_known(name, places, asked.headers):
            return None
        pieces.append(_Piece(same + start, fits))
        places.append(place)
        same = b"\r\n"
    return Repeat(asked, pieces, same + b"\r\n", places, credential)


def _says(line: bytes, name: bytes, value: bytes) -> bool:
    """Whether the parser has read it so; and no line is one that tells how to treat others."""
    said, _, rest = line.partition(b":")
    if said.lower() != name or rest.strip(b" \t") != value.strip(b" \t"):
        return False
    return name != b"connection" or value.lower() in _KEEPING


def _is_known(name: bytes, places: list[int], headers: Pairs) -> bool:
    return any(headers[place][0] == name for place in places)


def _place_of(name: bytes, names: list[bytes]) -> int | None:
    return names.index(name) if name in names else None
