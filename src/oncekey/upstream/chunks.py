"""A chunked body, undone. Strict, and bounded in everything that is not body."""

from __future__ import annotations

import re
from typing import Literal

from oncekey.upstream.framing import Malformed

MAX_LINE = 4096
MAX_TRAILERS = 16 << 10

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:;[\t\x20-\x7e\x80-\xff]*)?").fullmatch
_TRAILER = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*").fullmatch
_Place = Literal["size", "data", "after", "trailer"]


class Chunks:
    __slots__ = ("_left", "_line", "_place", "_trailers", "complete")

    def __init__(self) -> None:
        self.complete = False
        self._place: _Place = "size"
        self._left = 0
        self._line = b""
        self._trailers = 0

    def feed(self, data: bytes) -> bytes:
        """What of the body is in `data`."""
        found: list[bytes] = []
        at = 0
        while at < len(data):
            if self.complete:
                raise Malformed("there are bytes after the last chunk")
            if self._place == "data":
                piece = data[at : at + self._left]
                found.append(piece)
                at += len(piece)
                self._left -= len(piece)
                self._place = "data" if self._left else "after"
            else:
                at = self._take_line(data, at)
        return found[0] if len(found) == 1 else b"".join(found)

    def _take_line(self, data: bytes, at: int) -> int:
        end = data.find(b"\n", at) + 1
        line = self._line + data[at : end or len(data)]
        if len(line) > MAX_LINE:
            raise Malformed(f"a line between chunks has more than {MAX_LINE} bytes")
        if not end:
            self._line = line
            return len(data)
        self._line = b""
        if not line.endswith(b"\r\n"):
            raise Malformed("a line between chunks does not end with CR and LF")
        self._follow(line[:-2])
        return end

    def _follow(self, line: bytes) -> None:
        match self._place:
            case "after":
                if line:
                    raise Malformed("a chunk is longer than it says")
                self._place = "size"
            case "size":
                self._begin_chunk(line)
            case _:
                self._drop_trailer(line)

    def _begin_chunk(self, line: bytes) -> None:
        size = _SIZE(line)
        if size is None:
            raise Malformed("a chunk does not begin with its size")
        self._left = int(size[1], 16)
        self._place = "data" if self._left else "trailer"

    def _drop_trailer(self, line: bytes) -> None:
        self._trailers += len(line)
        if not line:
            self.complete = True
        elif self._trailers > MAX_TRAILERS or not _TRAILER(line):
            raise Malformed(
                f"a trailer is a name with a value, all of at most {MAX_TRAILERS} bytes"
            )
