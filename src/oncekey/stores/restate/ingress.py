"""Calls of handlers through Restate's ingress, each carried out once however often it is sent."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from urllib.parse import quote

from oncekey.core.errors import StoreError, StoreUnavailable, UpstreamError
from oncekey.stores.restate.nodes import LOOK_CLOSER, Lines, Nodes, Reply

_JSON = (b"content-type", b"application/json")
_OK = 200
_NOT_FOUND = 404
_NOT_READY = 470
# A node may have lost its way to a partition, without saying so: another one is asked then.
ATTEMPT = 3.0
_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


class NotServed(StoreUnavailable):
    """No process serves OnceKey's objects on this Restate cluster; start `oncekey serve`."""


class Ingress:
    def __init__(self, urls: Sequence[str]) -> None:
        self._nodes = Nodes(urls)
        self.close = self._nodes.close

    async def call(
        self,
        service: str,
        key: str | None,
        handler: str,
        body: bytes,
        *,
        nonce: str | None = None,
        patience: float = 10.0,
        attempt: float = ATTEMPT,
    ) -> bytes:
        """What the handler answers. `nonce`: of a call that may have been made before. `attempt`:
        seconds after which another node is asked.

        Raises `StoreUnavailable` when it is not answered in time; it may be carried out still.
        """
        named = service if key is None else f"{service}/{quote(key, safe='')}"
        place = f"{named}/{handler}"
        target = f"/restate/call/{place}".encode()
        lines = (_JSON, (b"idempotency-key", (nonce or new_nonce()).encode()))
        trouble = ""
        pause = _PAUSE
        try:
            async with asyncio.timeout(patience):
                while True:
                    try:
                        reply = await self._nodes.ask(b"POST", target, lines, body, timeout=attempt)
                    except UpstreamError as error:
                        trouble = str(error)
                    else:
                        if reply.status == _OK:
                            return reply.body
                        trouble = _trouble_of(reply)
                    await asyncio.sleep(pause)
                    pause = min(_LONGEST_PAUSE, pause * 2)
        except TimeoutError:
            raise StoreUnavailable(
                f"Restate did not answer within {patience:g} s: {trouble or 'no answer'}"
                f"{LOOK_CLOSER}"
            ) from None

    async def post(self, path: str, body: bytes, *, patience: float = 10.0) -> bytes:
        """What Restate itself answers, asked until it does. Raises `StoreUnavailable`."""
        return (await self._insist(b"POST", path, (_JSON,), body, {_OK}, patience)).body

    async def is_under_way(self, invocation: str, *, patience: float) -> bool:
        """Whether it has begun and not ended, told by whoever carries it out. Raises
        `StoreUnavailable`."""
        path = f"/restate/invocation/{quote(invocation, safe='')}/output"
        wanted = {_OK, _NOT_FOUND, _NOT_READY}
        reply = await self._insist(b"GET", path, (), b"", wanted, patience)
        return reply.status == _NOT_READY

    async def _insist(
        self, method: bytes, path: str, lines: Lines, body: bytes, wanted: set[int], patience: float
    ) -> Reply:
        trouble = ""
        try:
            async with asyncio.timeout(patience):
                while True:
                    try:
                        reply = await self._nodes.ask(
                            method, path.encode(), lines, body, timeout=patience
                        )
                    except UpstreamError as error:
                        trouble = str(error)
                    else:
                        if reply.status in wanted:
                            return reply
                        trouble = f"status {reply.status}"
                    await asyncio.sleep(_PAUSE)
        except TimeoutError:
            raise StoreUnavailable(
                f"Restate did not answer within {patience:g} s: {trouble or 'no answer'}"
                f"{LOOK_CLOSER}"
            ) from None


def new_nonce() -> str:
    return secrets.token_hex(12)


def _trouble_of(reply: Reply) -> str:
    """What is worth another attempt. Raises for what is not."""
    if dict(reply.headers).get(b"x-restate-error-source") == b"invocation":
        raise StoreError(f"Restate: the call failed: {reply.body[:300]!r}")
    if reply.status == _NOT_FOUND:
        raise NotServed
    return f"status {reply.status}"
