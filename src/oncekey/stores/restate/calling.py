"""Calls of `oncekey.Request/forward`, from the event loop of whoever serves clients."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from oncekey.core.errors import StoreError, StoreUnavailable, UpstreamError, UpstreamUnreachable
from oncekey.core.events import Seen
from oncekey.stores.restate.envelope import HANDLER, MARK, Envelope, Reply, encode, reply_of
from oncekey.stores.restate.ingress import ATTEMPT, NotServed
from oncekey.stores.restate.nodes import Lines, Nodes
from oncekey.stores.restate.request import SERVICE

_TYPE = (b"content-type", b"application/msgpack")
_OK, _NOT_FOUND, _BROKEN = 200, 404, 500
_SHORTEST = 0.01
_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


class Unsent(StoreUnavailable):
    """Restate cannot be reached; nothing was sent to it."""


class Broken(StoreError):
    """Restate ended the call without an answer."""


class _Trouble(NamedTuple):
    """Why an attempt came to nothing, and whether Restate may have heard of the call."""

    why: str
    sent: bool
    reached: bool


class Calling:
    """Belongs to one event loop. `patience`: for how long Restate may be out of reach."""

    def __init__(self, urls: Sequence[str], space: str, patience: float) -> None:
        self._nodes = Nodes(urls)
        self._start = f"/restate/call/{SERVICE}/{space}."
        self._patience = patience
        self.close = self._nodes.close

    async def call(
        self,
        digest: bytes,
        shared: str,
        envelope: Envelope,
        timeout: float,
        seen: Seen | None = None,
    ) -> Reply:
        """The answer to a call under this key of Restate's, made until there is one. `seen` learns
        the id of the call.

        Raises `Unsent`, `Broken`, and `StoreUnavailable` for what may be carried out still.
        """
        target = f"{self._start}{digest.hex()}/{HANDLER}".encode()
        lines = (_TYPE, (b"idempotency-key", shared.encode()), (MARK, envelope.mark))
        body = encode(envelope)
        clock = asyncio.get_running_loop().time
        reached = start = clock()
        pause, sent = _PAUSE, False
        while True:
            try:
                told = await self._attempt(target, lines, body, start + timeout - clock(), seen)
            except NotServed:
                # A node that has only begun knows of nobody. Another one may have the call.
                if not sent:
                    raise
                told = _Trouble("nobody serves it", sent=True, reached=False)
            if isinstance(told, Reply):
                return told
            reached = clock() if told.reached else reached
            sent = sent or told.sent
            if clock() - start >= timeout or clock() - reached >= self._patience:
                message = f"Restate did not answer in time: {told.why}"
                raise StoreUnavailable(message) if sent else Unsent(message)
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2)

    async def _attempt(
        self, target: bytes, lines: Lines, body: bytes, left: float, seen: Seen | None
    ) -> Reply | _Trouble:
        # A node may have lost its way to a partition, without saying so: another one is asked then.
        most = max(_SHORTEST, left if len(self._nodes) == 1 else min(left, ATTEMPT))
        try:
            told = await self._nodes.ask(b"POST", target, lines, body, timeout=most)
        except UpstreamError as error:
            sent = not isinstance(error, UpstreamUnreachable)
            return _Trouble(str(error), sent, reached=sent)
        if told.status == _OK:
            if seen is not None:
                seen.invocation = dict(told.headers).get(b"x-restate-id", b"").decode("latin-1")
            return reply_of(told.body)
        if dict(told.headers).get(b"x-restate-error-source") == b"invocation":
            raise Broken
        if told.status == _NOT_FOUND:
            raise NotServed
        # What it was asked for may be done before the way back is lost.
        return _Trouble(f"status {told.status}", told.status >= _BROKEN, reached=False)
