"""One answer as it arrives, whatever pieces it comes in. Pure."""

from __future__ import annotations

from oncekey.upstream.chunks import Chunks
from oncekey.upstream.framing import CHUNKED, END, UNTIL_CLOSED, Head, Heads, Malformed

_BEGIN = b"HTTP/1."


class Reading:
    __slots__ = (
        "_bodiless",
        "_chunks",
        "_heads",
        "_left",
        "_max_head",
        "_pending",
        "complete",
        "head",
    )

    def __init__(self, heads: Heads, max_head: int, *, bodiless: bool = False) -> None:
        """`bodiless`: it answers HEAD, and has no body whatever its head says."""
        self.head: Head | None = None
        self.complete = False
        self._heads = heads
        self._max_head = max_head
        self._bodiless = bodiless
        self._pending = bytearray()
        self._chunks: Chunks | None = None
        self._left = 0

    def feed(self, data: bytes) -> bytes:
        """What of the body is in `data`. Raises Malformed."""
        if self.head is None:
            rest = self._take_heads(data)
            return b"" if rest is None else self._take_body(rest)
        return self._take_body(data)

    def end(self) -> Head:
        """The upstream closed its side. Raises Malformed when that is too early."""
        if self.head is None or self.head.length != UNTIL_CLOSED:
            raise Malformed("it closed the connection before its answer was whole")
        self.complete = True
        return self.head

    def _take_heads(self, data: bytes) -> bytes | None:
        """What follows the head, or nothing while it is not whole. Interim ones are skipped."""
        pending = self._pending
        seen = max(0, len(pending) - len(END))
        pending += data
        while (end := pending.find(END, seen)) >= 0:
            size = end + len(END)
            self._count(size)
            head = self._heads.read(bytes(pending[:size]))
            del pending[:size]
            seen = 0
            if not head.interim:
                self.head = head
                self._frame(head)
                return bytes(pending)
        if not pending.startswith(_BEGIN[: len(pending)]) or len(pending) > self._max_head:
            raise Malformed("the answer does not begin with a head of a size that is taken")
        return None

    def _count(self, size: int) -> None:
        # Interim answers count too: an upstream could send them for ever.
        self._max_head -= size
        if self._max_head < 0:
            raise Malformed("the head of the answer is too large")

    def _frame(self, head: Head) -> None:
        if self._bodiless:
            self.complete = True
        elif head.length == CHUNKED:
            self._chunks = Chunks()
        elif head.length >= 0:
            self._left = head.length
            self.complete = not self._left

    def _take_body(self, data: bytes) -> bytes:
        if self._chunks is not None:
            body = self._chunks.feed(data)
            self.complete = self._chunks.complete
            return body
        assert self.head is not None
        if self.head.length == UNTIL_CLOSED and not self.complete:
            return data
        self._left -= len(data)
        if self._left < 0:
            raise Malformed("the answer has more bytes than it says")
        self.complete = not self._left
        return data
