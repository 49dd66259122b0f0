"""The nodes of a cluster, asked over HTTP: another one is asked when one cannot be reached."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from oncekey.core.errors import UpstreamError
from oncekey.core.model import Headers
from oncekey.upstream import Upstream

Lines = Sequence[tuple[bytes, bytes]]
_IDLE = 60.0
LOOK_CLOSER = "; `oncekey check` tells what is away"


class Reply(NamedTuple):
    status: int
    headers: Headers
    body: bytes


class Nodes:
    """`ask` raises what the last node that was tried failed with. Belongs to one event loop."""

    def __init__(self, urls: Sequence[str], *, connect_timeout: float = 1.0) -> None:
        self._nodes = [
            Upstream(url, connect_timeout=connect_timeout, idle=_IDLE, max_connections=512)
            for url in urls
        ]
        self._first = 0

    async def ask(
        self, method: bytes, target: bytes, lines: Lines, body: bytes, *, timeout: float
    ) -> Reply:
        """One attempt, at the node that answered last."""
        node = self._nodes[self._first]
        listening = _Listening()
        listening.asked = node.ask(method, target, lines, body, listening, timeout=timeout)
        try:
            return await listening.arrived
        except UpstreamError:
            self._first = (self._nodes.index(node) + 1) % len(self._nodes)
            raise
        except asyncio.CancelledError:
            listening.asked.abandon()
            raise

    def __len__(self) -> int:
        return len(self._nodes)

    async def close(self) -> None:
        for node in self._nodes:
            await node.close()


class _Listening:
    def __init__(self) -> None:
        self.arrived: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._head: tuple[int, Headers] = (0, ())
        self._pieces: list[bytes] = []
        self.asked: Any = None

    def whole(self, status: int, headers: Headers, body: bytes) -> None:
        if not self.arrived.done():
            self.arrived.set_result(Reply(status, headers, body))

    def began(self, status: int, headers: Headers) -> None:
        self._head = (status, headers)

    def chunk(self, data: bytes) -> None:
        self._pieces.append(data)

    def ended(self) -> None:
        self.whole(*self._head, b"".join(self._pieces))

    def failed(self, error: UpstreamError) -> None:
        if not self.arrived.done():
            self.arrived.set_exception(error)
