"""A call through Restate that is not answered at once: who has the key, and how long is it worth
waiting for? Restate itself would let its callers wait for ever."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from oncekey.core.errors import StoreUnavailable
from oncekey.core.model import Record, operation_id_of
from oncekey.edge.troubles import Troubles
from oncekey.stores.restate.envelope import Envelope, Reply
from oncekey.stores.restate.forward import Forwards, Running
from oncekey.stores.restate.holding import Holding
from oncekey.wire.problem import Response, problem, problem_of

SOON = 0.1
"""Most calls are answered within it."""
_LOOK_AFTER, _BETWEEN_LOOKS = 0.5, 0.2
_LOOK_TIMEOUT = 1.0
_LONGEST_PAUSE = 1.0


class Looks:
    """Asking Restate who has a key costs it more than a call does. Where many calls are slow, only
    a few of them are looked after; the others wait a little longer."""

    def __init__(self, holding: Holding, forwards: Forwards, troubles: Troubles) -> None:
        self.holding = holding
        self._forwards = forwards
        self._troubles = troubles
        self._next = 0.0

    def here(self, digest: bytes) -> Running | None:
        """What this process itself asks a service behind for."""
        return self._forwards.running.get(digest)

    async def anywhere(self, digest: bytes) -> Running | None:
        now = asyncio.get_running_loop().time()
        if now < self._next:
            return None
        self._next = now + _BETWEEN_LOOKS
        try:
            holder = await self.holding.of(digest, patience=_LOOK_TIMEOUT)
        except StoreUnavailable as error:
            self.tell(f"who has a key cannot be found out: {error}")
            return None
        if holder is None:
            return None
        return Running(holder.mark.fingerprint, holder.mark.number, holder.id)

    def tell(self, why: str) -> None:
        self._troubles.tell("restate", why)


class Call(NamedTuple):
    """One call under way; `shared` is the key under which Restate knows it."""

    digest: bytes
    shared: str
    envelope: Envelope
    reply: asyncio.Task[Reply]


class Awaiting:
    """`wait`: seconds that a call may last that is somebody else's. `deadline`: when any call has
    lasted for too long, by the clock of the loop."""

    def __init__(self, looks: Looks, call: Call, wait: float, deadline: float) -> None:
        self._looks = looks
        self._call = call
        self._clock = asyncio.get_running_loop().time
        begun = self._clock() - SOON
        self._look_at = begun + _LOOK_AFTER
        self._wait_until = begun + wait
        self._deadline = deadline

    async def told(self) -> Reply | Response:
        """The reply, or the answer to a caller for whom there is none in time."""
        reply, pause, envelope = self._call.reply, SOON, self._call.envelope
        while not reply.done():
            holder = await self._holder()
            if reply.done():
                break
            until = self._deadline
            if holder is not None:
                if holder.number == envelope.number:
                    # From here on nobody else matters.
                    return await self._to_the_end()
                refusal = await self._refusal(holder)
                if refusal is not None:
                    return await self._withdrawn(refusal, holder)
                if self._clock() < self._wait_until:
                    until = min(until, self._wait_until)
            if self._clock() >= self._deadline:
                return await self._overdue()
            await asyncio.wait((reply,), timeout=min(pause, max(0.0, until - self._clock())))
            pause = min(_LONGEST_PAUSE, 2 * pause)
        return reply.result()

    async def _refusal(self, holder: Running) -> Response | None:
        """What a caller is told while another one holds the key; None while he is to wait. What is
        forwarded here has found that the key is nobody's. What is only called for, and nobody hears
        it, holds the key as well, which may have been somebody's for long."""
        is_same = holder.fingerprint == self._call.envelope.fingerprint
        if is_same and self._clock() < self._wait_until:
            return None
        refusal = _busy(holder.number) if is_same else problem("idempotency-key-reused")
        if self._looks.here(self._call.digest) is holder:
            return refusal
        holding = self._looks.holding
        try:
            if not await holding.is_under_way(holder.id, patience=_LOOK_TIMEOUT):
                return None
            record = await self._record()
        except StoreUnavailable as error:
            self._looks.tell(f"who has a key cannot be found out: {error}")
            return None
        return refusal if record is None else self._told_by(record)

    async def _record(self) -> Record | None:
        digest, _, envelope, _ = self._call
        now = envelope.created_at
        return await self._looks.holding.record_of(digest, now, patience=_LOOK_TIMEOUT)

    def _told_by(self, record: Record) -> Response | None:
        """None: the key is the caller's."""
        is_his = record.fingerprint == self._call.envelope.fingerprint
        return None if is_his else problem("idempotency-key-reused")

    async def _holder(self) -> Running | None:
        digest = self._call.digest
        here = self._looks.here(digest)
        if here is not None or self._clock() < self._look_at:
            return here
        return await self._looks.anywhere(digest)

    async def _to_the_end(self) -> Reply | Response:
        reply = self._call.reply
        await asyncio.wait((reply,), timeout=max(0.0, self._deadline - self._clock()))
        return reply.result() if reply.done() else await self._overdue()

    async def _overdue(self) -> Response:
        """Restate goes on with what it has, and a retry gets the answer."""
        digest, shared, envelope, _ = self._call
        holding = self._looks.holding
        try:
            id_ = await holding.id_of(digest, shared, patience=_LOOK_TIMEOUT)
            is_under_way = await holding.is_under_way(id_, patience=_LOOK_TIMEOUT)
            record = await self._record()
        except StoreUnavailable as error:
            return problem_of(error)
        if record is None and is_under_way:
            return _busy(envelope.number)
        refusal = None if record is None else self._told_by(record)
        return refusal or problem("ledger-unavailable")

    async def _withdrawn(self, answer: Response, holder: Running) -> Reply | Response:
        """`answer`, once it is sure that the call will not be carried out after it: one that waits
        behind another is taken back. One that has joined that other is nobody's own."""
        digest, shared, _, _ = self._call
        holding = self._looks.holding
        try:
            if holder.id == await holding.id_of(digest, shared, patience=_LOOK_TIMEOUT):
                return answer
            if await holding.withdraw(digest, shared, patience=_LOOK_TIMEOUT):
                return answer
        except StoreUnavailable as error:
            self._looks.tell(f"a call cannot be taken back: {error}")
        # It has begun meanwhile.
        return await self._to_the_end()


def _busy(number: int) -> Response:
    return problem("request-in-progress", operation_id=operation_id_of(number))
