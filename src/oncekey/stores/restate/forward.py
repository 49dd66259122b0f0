"""The handler `forward` of `oncekey.Request`: ask a service behind once for a key, keep its answer.

Between looking at the record and writing it there is nothing that Restate would have to remember:
that would cost as much as the call itself. What a process was asked twice, because a node died
under the first call, it does once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

from restate.exceptions import TerminalError

from oncekey.core.clock import Clock
from oncekey.core.errors import StoreUnavailable
from oncekey.core.model import Record
from oncekey.stores.restate.envelope import (
    HANDLER,
    Envelope,
    First,
    Ran,
    Reply,
    encode,
    envelope_of,
)
from oncekey.stores.restate.objects import add
from oncekey.stores.restate.request import keep, load
from oncekey.wire.exchange import shown
from oncekey.wire.problem import problem

# A call that Restate breaks off is made again: not before the service behind had its time.
_MARGIN = 30.0
# Milliseconds. What comes later may have been called before, by a node that knows no more of it.
_PROMPT = 1000
# A node that took over calls again within seconds.
_REMEMBERED, _REMEMBERED_BYTES = 4096, 32 << 20


class Performs(Protocol):
    """Asks services behind, in a process that has an edge. Called on the loop of the store."""

    def knows(self, envelope: Envelope) -> bool: ...

    async def __call__(self, envelope: Envelope) -> Ran: ...


class Running(NamedTuple):
    """A request for which a service behind is asked just now, and the invocation that asks."""

    fingerprint: bytes
    number: int
    id: str


Written = Callable[[bytes, int], Awaitable[Record | None]]


async def _nothing(_: bytes, __: int) -> Record | None:
    return None


class Forwards:
    """Forwarded requests of one space in this process. `performs` is whoever asks services behind;
    None where there is no edge, or none yet (`is_awaited`). `longest`: seconds that those may take
    to answer."""

    def __init__(
        self, space: str, clock: Clock, longest: float = 0.0, *, is_awaited: bool = False
    ) -> None:
        self._prefix = f"{space}."
        self._now = clock.now
        self.longest = longest
        self.performs: Performs | None = None
        self.is_awaited = is_awaited
        self.written: Written = _nothing
        """What the object of a key has under a number, asked from without."""
        self.running: dict[bytes, Running] = {}
        self._runs: dict[str, asyncio.Future[Ran]] = {}
        self._ended: deque[tuple[str, int]] = deque()
        self._bytes = 0

    async def forward(self, ctx: Any, body: bytes) -> bytes:
        envelope = envelope_of(body)
        digest = envelope.ref.digest
        name: str = ctx.key()
        if not name.endswith(f".{digest.hex()}"):
            raise TerminalError("the envelope belongs to another key")
        if self.is_awaited and name.startswith(self._prefix):
            # Then Restate calls again.
            raise ConnectionError("the edge of this process is about to start")
        before = await load(ctx)
        if ctx.is_replaying:
            written = await self._written(digest, envelope.number)
            if written is not None:
                return _concluded(ctx, envelope, before, written, None)
        now = self._now()
        told = _told(before, envelope)
        # Whoever was called before may have done it, whatever comes of it now.
        again = ctx.is_retried or now - envelope.created_at > _PROMPT
        performs = self.performs
        if performs is None or not name.startswith(self._prefix) or not performs.knows(envelope):
            if told is None and again:
                keep(ctx, before, envelope.abandoned())
            return encode(Reply("elsewhere", envelope.nonce))
        if told is not None:
            return encode(told)
        ran = await self._run(performs, digest, envelope, ctx.invocation_id)
        ran = ran._replace(doubtful=ran.doubtful or again)
        return _concluded(ctx, envelope, before, _record_of(envelope, ran, self._now()), ran)

    async def _written(self, digest: bytes, number: int) -> Record | None:
        try:
            return await self.written(digest, number)
        except StoreUnavailable as error:
            # Then Restate calls again.
            raise ConnectionError(str(error)) from error

    def forget(self) -> None:
        """In a forked child: what runs, runs in the parent."""
        self.running.clear()
        self._runs.clear()
        self._ended.clear()
        self._bytes = 0

    async def drain(self) -> None:
        """When nothing is asked any more of what was begun."""
        while self.running:
            running = [run for run in self._runs.values() if not run.done()]
            # Whoever waits no longer ends none of them.
            if running:
                await asyncio.wait(running)
            await asyncio.sleep(0)

    async def _run(
        self, performs: Performs, digest: bytes, envelope: Envelope, invocation: str
    ) -> Ran:
        run = self._runs.get(envelope.nonce)
        if run is not None:
            return await asyncio.shield(run)
        run = self._runs[envelope.nonce] = asyncio.get_running_loop().create_future()
        self.running[digest] = Running(envelope.fingerprint, envelope.number, invocation)
        try:
            ran = await performs(envelope)
        except BaseException as error:
            del self._runs[envelope.nonce]
            run.set_exception(ConnectionError(f"a call before this one failed: {error!r}"))
            # There may be nobody else to hear of it.
            run.exception()
            raise
        finally:
            self.running.pop(digest, None)
        run.set_result(ran)
        self._remember(envelope.nonce, _size_of(ran))
        return ran

    def _remember(self, nonce: str, size: int) -> None:
        self._ended.append((nonce, size))
        self._bytes += size
        while len(self._ended) > _REMEMBERED or self._bytes > _REMEMBERED_BYTES:
            forgotten, size = self._ended.popleft()
            self._bytes -= size
            del self._runs[forgotten]


def _told(record: Record | None, envelope: Envelope) -> Reply | None:
    """What a key that is known already is answered; None when the service behind is to be asked.
    What counts is when the request came: whoever was called late finds what its caller was told."""
    if record is None:
        return None
    if record.outcome is None or record.link is not None:
        return Reply("claimed", envelope.nonce, record.id)
    if record.expires_at <= envelope.created_at:
        return None
    if record.fingerprint != envelope.fingerprint:
        return Reply("mismatch", envelope.nonce)
    return Reply(
        "replay", envelope.nonce, record.id, record.request_id, record.expires_at, record.outcome
    )


def _concluded(
    ctx: Any, envelope: Envelope, before: Record | None, record: Record | None, ran: Ran | None
) -> bytes:
    """Keep the record, and answer. Without `ran`, it is what another attempt of this call wrote
    before it was cut off: to write it again changes nothing. What leaves nothing behind writes
    nothing either, or who is called again would not know of it: what is over may stay."""
    keep(ctx, before, record or before)
    if ran is None:
        assert record is not None
        ran = _ran_of(record)
    expires_at = 0 if record is None else record.expires_at
    said = (envelope.nonce, envelope.number, envelope.request_id, expires_at)
    return encode(Reply("ran", *said, ran.outcome, ran.first))


def _record_of(envelope: Envelope, ran: Ran, now: int) -> Record | None:
    if ran.outcome is not None:
        return envelope.settled(ran.outcome, now)
    return envelope.abandoned() if ran.doubtful else None


def _ran_of(record: Record) -> Ran:
    """As far as the record tells it."""
    outcome = record.outcome
    if outcome is None:
        broken = problem("upstream-uncertain", operation_id=record.operation_id)
        return Ran(None, First(*broken), doubtful=True)
    return Ran(outcome, First(outcome.status, shown(outcome), None))


def _size_of(ran: Ran) -> int:
    outcome, first, _ = ran
    kept = 0 if outcome is None else len(outcome.body)
    return kept + (0 if first is None or first.body is None else len(first.body))


def add_forward(to: Any, forwards: Forwards) -> None:
    add(to, HANDLER, forwards.forward, brief=True)
    declared = to.handlers[HANDLER]
    declared.handler_io.content_type = "application/msgpack"
    declared.inactivity_timeout = timedelta(seconds=forwards.longest + _MARGIN)
    declared.abort_timeout = timedelta(seconds=_MARGIN)
