"""Restate's admin API: SQL over what is kept, deployments, services and invocations."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from oncekey.core.errors import StoreUnavailable, UpstreamError
from oncekey.stores.restate.nodes import LOOK_CLOSER, Nodes, Reply

_LINES = ((b"content-type", b"application/json"), (b"accept", b"application/json"))
_BROKEN = 500
# An answer all the same: about an endpoint that cannot be called.
_TOLD = b'"restate_code":"META'
_PAUSE = 0.1


class Admin:
    def __init__(self, urls: Sequence[str]) -> None:
        self._nodes = Nodes(urls)
        self.close = self._nodes.close

    async def query(self, sql: str, *, patience: float = 10.0) -> list[dict[str, Any]]:
        """Rows of a SELECT; columns that are null are left out of a row."""
        body = msgspec.json.encode({"query": sql})
        reply = await self.ask("POST", "/query", body, patience=patience)
        rows: list[dict[str, Any]] = msgspec.json.decode(reply.body)["rows"]
        return rows

    async def ask(
        self, method: str, path: str, body: bytes = b"", *, patience: float = 10.0
    ) -> Reply:
        """The reply, also when it is a 404 or another refusal. Raises `StoreUnavailable`."""
        trouble = ""
        try:
            async with asyncio.timeout(patience):
                while True:
                    try:
                        reply = await self._nodes.ask(
                            method.encode(), path.encode(), _LINES, body, timeout=patience
                        )
                    except UpstreamError as error:
                        trouble = str(error)
                    else:
                        if reply.status < _BROKEN or _TOLD in reply.body:
                            return reply
                        trouble = f"status {reply.status}: {reply.body[:300]!r}"
                    await asyncio.sleep(_PAUSE)
        except TimeoutError:
            raise StoreUnavailable(
                f"Restate's admin API did not answer within {patience:g} s: "
                f"{trouble or 'no answer'}{LOOK_CLOSER}"
            ) from None
