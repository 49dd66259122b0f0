"""An upstream: a few connections, kept warm, and those who wait for one.

`ask` makes no task and no future when a connection is idle and the body is at hand; one timer looks
at all deadlines. An ask that was never written is Unreachable, any other failure is Uncertain."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Sequence
from time import monotonic
from typing import NamedTuple

from oncekey.core.errors import UpstreamUncertain, UpstreamUnreachable
from oncekey.upstream.address import address_of
from oncekey.upstream.ask import Ask, Body, Listener
from oncekey.upstream.connection import RESTED, Connection
from oncekey.upstream.framing import Heads
from oncekey.upstream.pouring import Pieces, Pouring
from oncekey.upstream.request import RequestWriter

SWEEP = 0.1
# Beyond it, a body is not copied to stand right behind its head.
_JOINED = 64 << 10


class Load(NamedTuple):
    busy: int
    idle: int
    connecting: int
    waiting: int


class Upstream:
    def __init__(
        self,
        url: str,
        *,
        timeout: float = 30.0,
        connect_timeout: float = 5.0,
        max_connections: int = 256,
        max_waiting: int = 4096,
        idle: float = 1.5,
        max_head: int = 64 << 10,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.address = address_of(url)
        self.heads = Heads()
        self.max_head = max_head
        self._writer = RequestWriter(self.address)
        self._tls = (tls or ssl.create_default_context()) if self.address.tls else None
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._max_connections = max_connections
        self._max_waiting = max_waiting
        self._idle_limit = idle
        self._timer: asyncio.TimerHandle | None = None
        self._idle: list[Connection] = []
        self._live: set[Connection] = set()
        self._waiting: deque[Ask] = deque()
        self._pouring: set[Ask] = set()
        self._connecting: set[asyncio.Task[None]] = set()
        self._closed = False
        self._drained: asyncio.Event | None = None

    @property
    def load(self) -> Load:
        idle = len(self._idle)
        return Load(len(self._live) - idle, idle, len(self._connecting), len(self._waiting))

    @property
    def longest(self) -> float:
        """Seconds until an ask has failed of which nothing is heard."""
        return self._connect_timeout + self._timeout

    def ask(
        self,
        method: bytes,
        target: bytes,
        headers: Sequence[tuple[bytes, bytes]],
        body: Body,
        listener: Listener,
        *,
        timeout: float | None = None,
        length: int | None = None,
    ) -> Ask:
        """`length`: of a body that comes in pieces, when it is known. Raises InvalidInput."""
        start = self.start(method, target, headers)
        return self.ask_from(method, start, (), body, listener, timeout=timeout, length=length)

    def start(self, method: bytes, target: bytes, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
        """What many requests have in common, for `ask_from`. Raises InvalidInput."""
        return self._writer.start(method, target, headers)

    def ask_from(
        self,
        method: bytes,
        start: bytes,
        headers: Sequence[tuple[bytes, bytes]],
        body: Body,
        listener: Listener,
        *,
        timeout: float | None = None,
        length: int | None = None,
    ) -> Ask:
        """As `ask`, with `headers` beside those of `start`."""
        if timeout is None:
            timeout = self._timeout
        now = monotonic()
        if not isinstance(body, bytes):
            payload = self._writer.request(method, start, headers, length)
            ask = Ask(listener, payload, method, timeout, now, now + timeout)
            self._pour(ask, body, length)
            return ask
        size = len(body)
        near = body if size <= _JOINED else b""
        payload = self._writer.request(method, start, headers, size, near)
        ask = Ask(listener, payload, method, timeout, now, now + timeout)
        if size > _JOINED:
            ask.large = body
        elif self._idle:
            # Nearly every ask: a connection was used a moment ago. Otherwise see `_place`.
            connection = self._idle[-1]
            if now - connection.rested < RESTED and not connection.closing():
                del self._idle[-1]
                connection.ask = ask
                ask.connection = connection
                connection.write(payload)
                return ask
        self._place(ask)
        return ask

    async def close(self, grace: float = 0.0) -> None:
        """New asks are refused; those under way have `grace` seconds to end."""
        self._closed = True
        for connection in list(self._idle):
            connection.close()
        if grace > 0 and self._busy():
            self._drained = asyncio.Event()
            try:
                async with asyncio.timeout(grace):
                    await self._drained.wait()
            except TimeoutError:
                pass
        self._cut()
        tasks = [*self._connecting]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        # Transports close one turn of the loop later.
        await asyncio.sleep(0)

    # What connections tell.

    def rest(self, connection: Connection) -> None:
        """It is free: for whoever waits longest, or until it is wanted."""
        if not (self._waiting or self._closed) and connection.limit > 0:
            connection.rested = monotonic()
            self._idle.append(connection)
            return
        while self._waiting:
            ask = self._waiting.popleft()
            if not ask.over:
                connection.carry(ask)
                return
        if self._closed or connection.limit <= 0:
            connection.close()
        else:
            self.rest(connection)

    def leave(self, connection: Connection) -> None:
        """It is of no more use."""
        self._live.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        if self._waiting:
            self._reach()
        self._note_drained()

    # Placing asks.

    def _place(self, ask: Ask) -> None:
        if self._closed:
            self._refuse(ask, "it is being closed")
            return
        idle = self._idle
        while idle:
            connection = idle.pop()
            if connection.fresh(ask.since):
                connection.carry(ask)
                return
            connection.close()
        if len(self._waiting) >= self._max_waiting:
            self._refuse(ask, f"too many waiting: {self._max_waiting} already wait for it")
            return
        self._waiting.append(ask)
        self._reach()

    def _refuse(self, ask: Ask, why: str) -> None:
        # Later, so that nobody hears of an ask that is not yet in their hands.
        asyncio.get_running_loop().call_soon(ask.fail, self._unreachable(why))

    def _unreachable(self, why: object) -> UpstreamUnreachable:
        return UpstreamUnreachable(f"the upstream {self.address} was not asked: {why}")

    def _pour(self, ask: Ask, pieces: Pieces, length: int | None) -> None:
        ask.pouring = Pouring(ask, pieces, length)
        self._pouring.add(ask)
        ask.pouring.start(self._place).add_done_callback(lambda _: self._poured(ask))
        self._watch()

    def _poured(self, ask: Ask) -> None:
        self._pouring.discard(ask)
        self._note_drained()

    # Connecting.

    def _reach(self) -> None:
        """Open connections for those who wait, as far as there may be more."""
        while len(self._connecting) < len(self._waiting) and (
            len(self._live) + len(self._connecting) < self._max_connections
        ):
            task = asyncio.get_running_loop().create_task(self._connect())
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)
        self._watch()

    async def _connect(self) -> None:
        since = monotonic()
        try:
            async with asyncio.timeout(self._connect_timeout):
                connection = await self._open()
        except TimeoutError:
            self._miss(since, f"no connection within {self._connect_timeout:g} s")
        except (OSError, ValueError) as error:
            self._miss(since, error)
        else:
            self._gain(since, connection)

    async def _open(self) -> Connection:
        def make() -> Connection:
            return Connection(self, self._idle_limit)

        address = self.address
        loop = asyncio.get_running_loop()
        if address.socket:
            return (await loop.create_unix_connection(make, address.socket))[1]
        return (await loop.create_connection(make, address.host, address.port, ssl=self._tls))[1]

    def _gain(self, since: float, connection: Connection) -> None:
        self._forget_attempt()
        # With TLS there may be news that are no end: tickets for later sessions.
        if connection.closed or connection.closing() or (not self._tls and connection.has_news()):
            self._miss(since, "it closed the connection at once, or spoke first")
            connection.abort()
            return
        self._live.add(connection)
        self.rest(connection)

    def _miss(self, since: float, why: object) -> None:
        """No connection. Who waited for all of that time hears of it, unless others work still."""
        self._forget_attempt()
        if self._live:
            return
        while self._waiting and (self._waiting[0].since <= since or self._waiting[0].over):
            self._waiting.popleft().fail(self._unreachable(why))
        self._reach()
        self._note_drained()

    def _forget_attempt(self) -> None:
        """Before anybody counts how many there are."""
        task = asyncio.current_task()
        if task is not None:
            self._connecting.discard(task)

    # Time.

    def _watch(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SWEEP, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.sweep()
        if self._live or self._waiting or self._connecting or self._pouring:
            self._watch()

    def sweep(self) -> None:
        """End what is late, and connections that rested for too long."""
        now = monotonic()
        for connection in list(self._live):
            connection.expire(now)
        late = [ask for ask in self._waiting if ask.over or now > ask.deadline]
        if late:
            self._waiting = deque(
                [ask for ask in self._waiting if not (ask.over or now > ask.deadline)]
            )
        for ask in late:
            ask.fail(self._unreachable(f"no connection was free within {ask.timeout:g} s"))
        for ask in list(self._pouring):
            if ask.deadline < now and ask.pouring is not None and ask.pouring.waits:
                ask.fail(self._unreachable(f"its body did not begin within {ask.timeout:g} s"))
        if self._waiting:
            self._reach()

    # Closing.

    def _busy(self) -> bool:
        return bool(self._waiting or self._pouring or len(self._live) > len(self._idle))

    def _note_drained(self) -> None:
        if self._drained is not None and not self._busy():
            self._drained.set()

    def _cut(self) -> None:
        """End what is still under way."""
        for ask in [*self._waiting, *[each for each in self._pouring if each.connection is None]]:
            ask.fail(self._unreachable("it is being closed"))
        self._waiting.clear()
        for connection in list(self._live):
            connection.fail(UpstreamUncertain(f"the upstream {self.address} was cut off: closing"))
