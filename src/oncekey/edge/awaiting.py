"""A call through Restate that is not answered at once: who has the key, and how long is it worth
waiting for? Restate itself would let its callers wait for ever."""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from oncekey.core.errors import StoreUnavailable
from oncekey.core.model import operation_id_of
from oncekey.stores.restate.envelope import Envelope, Reply
from oncekey.stores.restate.holding import Holder, Holding
from oncekey.wire.problem import Response, problem, problem_of

log = logging.getLogger("oncekey")

SOON = 0.1
"""Most calls are answered within it; then nobody need be asked who has the key."""
_LONGEST_PAUSE = 1.0
_LOOK_TIMEOUT = 1.0


class Call(NamedTuple):
    """One call under way; `shared` is the key under which Restate knows it."""

    digest: bytes
    shared: str
    envelope: Envelope
    reply: asyncio.Task[Reply]


class Awaiting:
    """`wait`: seconds that a call may last that is somebody else's. `deadline`: when any call has
    lasted for too long, by the clock of the loop."""

    def __init__(self, holding: Holding, call: Call, wait: float, deadline: float) -> None:
        self._holding = holding
        self._call = call
        self._clock = asyncio.get_running_loop().time
        self._wait_until = self._clock() + wait - SOON
        self._deadline = deadline

    async def told(self) -> Reply | Response:
        """The reply, or the answer to a caller for whom there is none in time."""
        reply, pause = self._call.reply, SOON
        while not reply.done():
            holder = await self._holder()
            if reply.done():
                break
            if holder is None:
                until = self._deadline
            elif holder.mark.nonce == self._call.envelope.nonce:
                # From here on nobody else matters.
                return await self._to_the_end()
            elif holder.mark.fingerprint != self._call.envelope.fingerprint:
                return await self._withdrawn(problem("idempotency-key-reused"))
            else:
                until = min(self._deadline, self._wait_until)
                if self._clock() >= until:
                    return await self._withdrawn(_busy(holder.mark.number), holder)
            if self._clock() >= self._deadline:
                return await self._overdue()
            await asyncio.wait((reply,), timeout=min(pause, max(0.0, until - self._clock())))
            pause = min(_LONGEST_PAUSE, 2 * pause)
        return reply.result()

    async def _to_the_end(self) -> Reply | Response:
        reply = self._call.reply
        await asyncio.wait((reply,), timeout=max(0.0, self._deadline - self._clock()))
        return reply.result() if reply.done() else await self._overdue()

    async def _overdue(self) -> Response:
        """Restate goes on with what it has, and a retry gets the answer."""
        digest, shared, envelope, _ = self._call
        try:
            known = await self._holding.is_known(digest, shared, patience=_LOOK_TIMEOUT)
        except StoreUnavailable as error:
            return problem_of(error)
        return _busy(envelope.number) if known else problem("ledger-unavailable")

    async def _withdrawn(self, answer: Response, holder: Holder | None = None) -> Reply | Response:
        """`answer`, once it is sure that the call will not be carried out after it: one that waits
        behind another is taken back. One that has joined that other is nobody's own."""
        digest, shared, _, _ = self._call
        try:
            if holder is not None and holder.id == await self._holding.id_of(digest, shared):
                return answer
            if await self._holding.withdraw(digest, shared, patience=_LOOK_TIMEOUT):
                return answer
        except StoreUnavailable as error:
            log.warning("a call cannot be taken back: %s", error)
        # It has begun meanwhile.
        return await self._to_the_end()

    async def _holder(self) -> Holder | None:
        try:
            return await self._holding.of(self._call.digest, patience=_LOOK_TIMEOUT)
        except StoreUnavailable as error:
            log.warning("who has a key cannot be found out: %s", error)
            return None


def _busy(number: int) -> Response:
    return problem("request-in-progress", operation_id=operation_id_of(number))
