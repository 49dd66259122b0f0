"""One connection: carries one request at a time, and is kept only while nothing about it is in
doubt."""

from __future__ import annotations

import asyncio
import select
from typing import TYPE_CHECKING, cast

from oncekey.core.errors import UpstreamError, UpstreamTimeout, UpstreamUncertain
from oncekey.upstream.ask import Ask, tell_mistake
from oncekey.upstream.framing import END, Head, Malformed
from oncekey.upstream.reading import Reading

if TYPE_CHECKING:
    from oncekey.upstream.pool import Upstream

# A body of a known length up to this is told whole, even when it comes in several pieces.
GATHERED = 64 << 10
# One that rested for longer is looked at before it is used: the upstream may have closed it.
RESTED = 0.005
_NEWS = select.POLLIN | select.POLLHUP | select.POLLERR


class Connection(asyncio.Protocol):
    __slots__ = (
        "_clogged",
        "_drained",
        "_gathered",
        "_known",
        "_news",
        "_pool",
        "_reading",
        "_transport",
        "_unsent",
        "ask",
        "closed",
        "closing",
        "limit",
        "rested",
        "write",
    )

    def __init__(self, pool: Upstream, idle: float) -> None:
        self._pool = pool
        self._known = pool.heads.known
        self.ask: Ask | None = None
        self.limit = idle
        """For how many seconds it may rest."""
        self.rested = 0.0
        """Since when it does."""
        self.closed = False
        self._reading: Reading | None = None
        self._gathered: list[bytes] = []
        self._clogged = False
        self._drained: asyncio.Future[None] | None = None
        self._news: select.poll | None = None

    # What the pool does with it.

    def carry(self, ask: Ask) -> None:
        """Write the request. From here on nobody can say that nothing was sent."""
        self.ask = ask
        ask.connection = self
        if ask.large:
            self._transport.writelines((ask.payload, ask.large))
            ask.large = b""
        else:
            self.write(ask.payload)
        if ask.pouring is not None:
            ask.pouring.placed(self)

    def fresh(self, now: float) -> bool:
        """Whether it can be used after its rest, as far as can be known without writing."""
        rest = now - self.rested
        if rest > self.limit or self.closing():
            return False
        return rest < RESTED or not self.has_news()

    def has_news(self) -> bool:
        """Whether the kernel has something for it that the loop has not seen yet."""
        if self._news is None:
            self._news = select.poll()
            self._news.register(self._transport.get_extra_info("socket").fileno(), _NEWS)
        return bool(self._news.poll(0))

    def expire(self, now: float) -> None:
        """End what is late: an answer, or a rest."""
        ask = self.ask
        if ask is None:
            if now - self.rested > self.limit:
                self.close()
        elif now > ask.deadline:
            late = f"the upstream {self._pool.address} did not answer within {ask.timeout:g} s"
            self.fail(UpstreamTimeout(late))

    def fail(self, error: UpstreamError) -> None:
        ask = self._end()
        self.abort()
        if ask is not None:
            ask.fail(error)

    def drop(self) -> None:
        """Nobody wants the answer."""
        self._end()
        self.abort()

    def close(self) -> None:
        self._leave()
        self._transport.close()

    def abort(self) -> None:
        self._leave()
        self._transport.abort()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    # What a body in pieces needs.

    async def drained(self) -> None:
        """When the upstream has taken enough to be sent more."""
        if self._clogged:
            self._drained = asyncio.get_running_loop().create_future()
            await self._drained

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.write = self._transport.write
        self.closing = self._transport.is_closing
        self._unsent = self._transport.get_write_buffer_size

    def pause_writing(self) -> None:
        self._clogged = True

    def resume_writing(self) -> None:
        self._clogged = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def data_received(self, data: bytes) -> None:
        ask = self.ask
        if ask is None:
            # Nobody asked: whoever comes next must not take it for an answer.
            self.abort()
            return
        if self._reading is None and ask.pouring is None:
            # Nearly every answer: its head was seen before, and all of it is here.
            end = data.find(END) + 4
            head = self._known.get(data[:end])
            if head is not None and head[2] == len(data) - end and ask.method != b"HEAD":
                self._tell_whole(ask, head, data[end:])
                return
        self._read(ask, data)

    def eof_received(self) -> None:
        ask, reading = self.ask, self._reading
        if ask is None:
            self.abort()
        elif reading is None:
            self.fail(self._uncertain("it closed the connection without an answer"))
        else:
            self._read_end(ask, reading)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.ask is not None:
            self.fail(self._uncertain(exc or "the connection was closed"))
        self._leave()

    # Reading.

    def _read(self, ask: Ask, data: bytes) -> None:
        reading = self._reading
        if reading is None:
            pool = self._pool
            reading = Reading(pool.heads, pool.max_head, bodiless=ask.method == b"HEAD")
            self._reading = reading
        try:
            body = reading.feed(data)
        except Malformed as error:
            self.fail(self._uncertain(error))
            return
        if reading.head is not None:
            self._advance(ask, reading, reading.head, body)

    def _read_end(self, ask: Ask, reading: Reading) -> None:
        try:
            head = reading.end()
        except Malformed as error:
            self.fail(self._uncertain(error))
            return
        self._advance(ask, reading, head, b"")

    def _advance(self, ask: Ask, reading: Reading, head: Head, body: bytes) -> None:
        if ask.pouring is not None:
            # It is answered: what is left of its body is not sent.
            ask.pouring.stop()
        if ask.began:
            self._tell_more(ask, head, body, complete=reading.complete)
        elif reading.complete:
            self._gathered.append(body)
            self._tell_whole(ask, head, b"".join(self._gathered))
        elif 0 <= head.length <= GATHERED:
            self._gathered.append(body)
        else:
            self._tell_beginning(ask, head, body)

    # Telling. The connection is free before the listener hears of the end, whatever it then does.

    def _tell_whole(self, ask: Ask, head: Head, body: bytes) -> None:
        status, headers, _, keeps, patience = head
        if keeps and patience is None and self._reading is None and not self._unsent():
            # As `_release` does; this is on the way of every answer.
            self.ask = ask.connection = None
            ask.over = True
            self._pool.rest(self)
        else:
            self._release(ask, head)
        try:
            ask.listener.whole(status, headers, body)
        except Exception as mistake:  # noqa: BLE001 - a listener's mistake is the listener's alone
            tell_mistake(mistake)

    def _tell_beginning(self, ask: Ask, head: Head, body: bytes) -> None:
        ask.began = True
        ask.prolong()
        try:
            ask.listener.began(head.status, head.headers)
            if body and not ask.over:
                ask.listener.chunk(body)
        except Exception as mistake:  # noqa: BLE001 - as above
            tell_mistake(mistake)

    def _tell_more(self, ask: Ask, head: Head, body: bytes, *, complete: bool) -> None:
        ask.prolong()
        if complete:
            self._release(ask, head)
        try:
            if body:
                ask.listener.chunk(body)
            if complete:
                ask.listener.ended()
        except Exception as mistake:  # noqa: BLE001 - as above
            tell_mistake(mistake)

    # Ends.

    def _release(self, ask: Ask, head: Head) -> None:
        self.ask = ask.connection = None
        if self._reading is not None:
            self._reading = None
            self._gathered = []
        ask.over = True
        if self._unsent() or (ask.pouring is not None and ask.pouring.unsent):
            # Closing would send the rest first, and wait for an upstream that does not want it.
            self.abort()
            return
        if self.closed or not head.keeps:
            self.close()
            return
        if head.patience is not None:
            self.limit = min(self.limit, max(head.patience - 1, head.patience / 2))
        self._pool.rest(self)

    def _end(self) -> Ask | None:
        """Whatever becomes of the ask: it is not this connection's any more, which is closed."""
        ask = self.ask
        self.ask = self._reading = None
        if ask is not None:
            ask.connection = None
        return ask

    def _leave(self) -> None:
        if not self.closed:
            self.closed = True
            self._pool.leave(self)

    def _uncertain(self, why: object) -> UpstreamUncertain:
        return UpstreamUncertain(f"the upstream {self._pool.address} was asked, and then: {why}")
