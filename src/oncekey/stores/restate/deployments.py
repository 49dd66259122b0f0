"""Deployments: where Restate finds which services, and how one goes on at another address."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from oncekey.core.errors import StoreError, StoreUnavailable
from oncekey.stores.restate.admin import Admin
from oncekey.stores.restate.link import text
from oncekey.stores.restate.nodes import Reply

_NOT_FOUND, _REFUSED = 404, 400
_PAUSE = 0.1
# What an endpoint of ours answers that is about to serve, and does not yet.
_NOT_YET = b"got status code '503"
_PATIENCE = 10.0
_CODE = re.compile(r"\[META\d+\] ")


class Deployment(NamedTuple):
    id: str
    uri: str
    names: frozenset[str]
    """Of the services that were found there."""


class Deployments:
    def __init__(self, admin: Admin, *, patience: float = _PATIENCE) -> None:
        self._admin = admin
        self._patience = patience

    async def serving(self, service: str) -> Deployment | None:
        """The one that gets the calls of a service; None when nobody registered it."""
        told = await self._told("GET", f"/services/{service}")
        if told is None:
            return None
        id_ = told["deployment_id"]
        told = await self._told("GET", f"/deployments/{id_}")
        if told is None:
            return None
        names = frozenset(each["name"] for each in told["services"])
        return Deployment(id_, told.get("uri", "").rstrip("/"), names)

    async def places_of(self, services: Iterable[str]) -> dict[str, str]:
        """The address at which each is called; those that nobody registered are left out."""
        named = ", ".join(map(text, services))
        rows = await self._admin.query(
            "SELECT s.name, d.endpoint FROM sys_service s JOIN sys_deployment d "  # noqa: S608
            f"ON s.deployment_id = d.id WHERE s.name IN ({named})"
        )
        return {row["name"]: row["endpoint"].rstrip("/") for row in rows}

    async def register(self, uri: str) -> None:
        """Let Restate find out which services are at `uri`, and call them there."""
        await self._discover("POST", "/deployments", uri, force=True)

    async def move(self, deployment: Deployment, uri: str) -> None:
        """All that goes to a deployment goes to `uri` from now on, also what has begun."""
        await self._discover("PATCH", f"/deployments/{deployment.id}", uri, overwrite=True)

    async def is_reached(self, uri: str, *, patience: float) -> bool:
        """Whether Restate can call it, as Restate itself sees it."""
        return await self.obstacle(uri, patience=patience) is None

    async def obstacle(self, uri: str, *, patience: float) -> str | None:
        """Why Restate cannot call an address; None when it can. Nothing is changed."""
        try:
            # Forced, or what is known of the address would do.
            reply = await self._ask("POST", "/deployments", uri, patience, dry_run=True, force=True)
        except StoreUnavailable as error:
            return str(error)
        return None if reply.status < _REFUSED else _reason(reply)

    async def _discover(self, method: str, path: str, uri: str, **more: Any) -> None:
        """Raises `StoreError` when Restate cannot call that address."""
        reply = await self._ask(method, path, uri, _PATIENCE, **more)
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                while _NOT_YET in reply.body:
                    await asyncio.sleep(_PAUSE)
                    reply = await self._ask(method, path, uri, _PATIENCE, **more)
        if reply.status < _REFUSED:
            return
        raise StoreError(
            f"Restate cannot call this process at {uri}: {_reason(reply)}; name an address that "
            "it reaches with endpoint= in the store url"
        )

    async def _ask(self, method: str, path: str, uri: str, patience: float, **more: Any) -> Reply:
        body = msgspec.json.encode({"uri": uri, "use_http_11": True, **more})
        return await self._admin.ask(method, path, body, patience=patience)

    async def _told(self, method: str, path: str) -> Any:
        reply = await self._admin.ask(method, path, patience=self._patience)
        return None if reply.status == _NOT_FOUND else msgspec.json.decode(reply.body)


def _reason(reply: Reply) -> str:
    """The last and most exact part of what Restate says about it."""
    try:
        message = str(msgspec.json.decode(reply.body)["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return f"status {reply.status}"
    told = message.rpartition("caused by: ")[2].partition(" Response headers")[0]
    return _CODE.sub("", told).strip(". \n")
