"""Restate's admin API: deployments, SQL over what is kept, and invocations."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from oncekey.core.errors import StoreError, StoreUnavailable, UpstreamError
from oncekey.stores.restate.nodes import Nodes, Reply

_LINES = ((b"content-type", b"application/json"), (b"accept", b"application/json"))
_NOT_FOUND = 404
_REFUSED, _BROKEN = 400, 500
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
        """The reply, also when it is a 404 or another refusal. Raises `StoreUnavailable`, and
        `StoreError` for a request that Restate does not understand."""
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
                        if reply.status < _BROKEN:
                            return reply
                        trouble = f"status {reply.status}: {reply.body[:300]!r}"
                    await asyncio.sleep(_PAUSE)
        except TimeoutError:
            raise StoreUnavailable(
                f"Restate's admin API did not answer within {patience:g} s: {trouble}"
            ) from None

    async def register(self, uri: str) -> None:
        """Let Restate find out which services are at `uri`."""
        body = msgspec.json.encode({"uri": uri, "use_http_11": True, "force": True})
        reply = await self.ask("POST", "/deployments", body)
        if reply.status >= _REFUSED:
            raise StoreError(
                f"Restate cannot use the endpoint {uri}: {reply.body[:300]!r}; is it reachable "
                "from there?"
            )

    async def serves(self, service: str) -> str | None:
        """The address of the deployment that has the service now; None when there is none."""
        reply = await self.ask("GET", f"/services/{service}")
        if reply.status == _NOT_FOUND:
            return None
        deployment = msgspec.json.decode(reply.body)["deployment_id"]
        reply = await self.ask("GET", f"/deployments/{deployment}")
        if reply.status == _NOT_FOUND:
            return None
        uri: str = msgspec.json.decode(reply.body).get("uri", "")
        return uri.rstrip("/")
