"""How an answer leaves on the short way: its head and body in one write, or piece by piece."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable
from contextlib import aclosing
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from oncekey.core.errors import UpstreamError
from oncekey.core.model import Headers
from oncekey.edge.asked import Answer, Asked, Pairs
from oncekey.edge.once import Once
from oncekey.edge.serving.strict_http import StrictHttp
from oncekey.wire.problem import Response, problem

_BODILESS = frozenset({204, 304})
_CHUNKED = b"transfer-encoding: chunked\r\n"
_CLOSE = b"connection: close\r\n\r\n"
_INTERNAL_ERROR = problem("internal-error")

Written = tuple[bytes, bool]
"""Lines of a head, and whether one of them says where the body ends."""


def _written(headers: Headers | Pairs) -> Written:
    lines: list[bytes] = []
    measured = False
    for name, value in headers:
        measured = measured or name == b"content-length"
        lines += (name, b": ", value, b"\r\n")
    return b"".join(lines), measured


# Of the same answers, and of what the server adds to each of them, new in every second.
_written_before: Once[Headers, Written] = Once(_written)
_added: Once[Pairs, Written] = Once(_written, most=2)


class Writing(StrictHttp):
    """A connection that answers can be written to."""

    def begin(self, work: Awaitable[Any], asked: Asked, cycle: Any) -> None:
        """Write what `work` answers, when it does."""
        task: asyncio.Task[None] = self.loop.create_task(self._finish(work, asked, cycle))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _finish(self, work: Awaitable[Any], asked: Asked, cycle: Any) -> None:
        try:
            answer = await work
        except Exception:
            self.logger.exception("%s %s failed", asked.method, asked.path)
            self.write(_INTERNAL_ERROR, asked, cycle)
            return
        rest = answer[3] if len(answer) > 3 else None
        if rest is None:
            self.write(answer, asked, cycle)
        else:
            await self._stream(answer, rest, cycle)

    def write(self, answer: Response | Answer, asked: Asked | None, cycle: Any) -> None:
        """The whole answer to what is under way."""
        transport = self.transport
        if cycle.seen is not None:
            self._end(cycle, answer[0])
        if transport.is_closing():
            # The client has gone; what it asked for is done all the same.
            cycle.response_complete = True
            return
        status, headers, body = answer[:3]
        if status in _BODILESS or (asked is not None and asked.method == "HEAD"):
            transport.write(self._head_of(status, headers, cycle, b""))
        else:
            framing = b"content-length: %d\r\n" % len(body)
            transport.write(self._head_of(status, headers, cycle, framing) + body)
        self._complete(cycle)

    def _end(self, cycle: Any, status: int) -> None:
        """Those who watch learn what it was answered."""
        seen, cycle.seen = cycle.seen, None
        self.app.edge_app.edge.proxy.watch.end(seen, status)

    def _head_of(self, status: int, headers: Headers | Pairs, cycle: Any, framing: bytes) -> bytes:
        """`framing` says where the body ends, unless one of `headers` does."""
        added, _ = _added(self.server_state.default_headers)
        written = _written_before(headers) if type(headers) is tuple else _written(headers)
        lines = (STATUS_LINE[status], added, written[0], b"" if written[1] else framing)
        return b"".join(lines) + (b"\r\n" if cycle.keep_alive else _CLOSE)

    async def _stream(self, answer: Answer, rest: Any, cycle: Any) -> None:
        status, headers, body, _ = answer
        if cycle.seen is not None:
            self._end(cycle, status)
        measured = any(name == b"content-length" for name, _ in headers)
        chunked = cycle.knows_chunks and not measured
        framing = _CHUNKED if chunked else b""
        self.transport.write(self._head_of(status, headers, cycle, framing))
        try:
            async with aclosing(rest):
                await self._write_on(body, chunked, cycle)
                async for chunk in rest:
                    await self._write_on(chunk, chunked, cycle)
                    if cycle.disconnected:
                        return
        except UpstreamError:
            # Half an answer must not look like a whole one.
            if chunked or measured:
                self.transport.close()
            else:
                self._reset()
            return
        if chunked:
            self.transport.write(b"0\r\n\r\n")
        self._complete(cycle)

    def _reset(self) -> None:
        """Where the end of the connection is the end of the answer, only a reset is no such end."""
        own = self.transport.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    async def _write_on(self, chunk: bytes, chunked: bool, cycle: Any) -> None:
        if not chunk or cycle.disconnected:
            return
        self.transport.write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunked else chunk)
        if self.flow.write_paused:
            await self.flow.drain()

    def _complete(self, cycle: Any) -> None:
        cycle.response_complete = True
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()
