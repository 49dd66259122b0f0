"""Where Restate calls this process: an HTTP server for its objects and its workflows."""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from restate.endpoint import Endpoint as Served

from oncekey.core.errors import ConfigurationError, StoreError, UpstreamError
from oncekey.stores.restate.admin import Admin
from oncekey.stores.restate.nodes import Nodes
from oncekey.stores.restate.place import RestatePlace

log = logging.getLogger("oncekey")

# Restate keeps its connections; one that is closed under a call is a call made again.
_KEEP_ALIVE = 24 * 3600
_BACKLOG = 1024
_HEALTH_TIMEOUT = 2.0
_OK = 200
_STOP_TIMEOUT = 5.0


class Endpoint:
    """`objects` are those every ledger on the cluster shares; one process serves them for all, or
    several at one address. What else there is to serve is this process's own."""

    def __init__(self, place: RestatePlace, admin: Admin, objects: list[Any]) -> None:
        self._place = place
        self._admin = admin
        self._objects = objects
        self._endpoint = Served()  # type: ignore[no-untyped-call]
        if place.identity:
            self._endpoint.identity_keys.append(place.identity)
        self._server: uvicorn.Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self.uri = place.endpoint
        self.hosts = False
        """Whether the shared objects are served here."""

    async def open(self) -> None:
        """Serve the shared objects, unless somebody else does."""
        there = await self._admin.serves(self._objects[0].name)
        if there is not None and there != self.uri and await _is_alive(there):
            return
        await self.host()

    async def host(self) -> None:
        """Serve the shared objects from now on."""
        self.hosts = True
        await self.serve(*self._objects)

    async def serve(self, *services: Any) -> None:
        """Serve these as well, and let Restate know."""
        for each in services:
            self._endpoint.services.pop(each.name, None)
        self._endpoint.bind(*services)
        if self._serving is None:
            await self._listen()
        await self._admin.register(self.uri)

    async def withdraw(self, *names: str) -> None:
        """Serve these no longer; what is called meanwhile is called again later."""
        for name in names:
            self._endpoint.services.pop(name, None)

    async def close(self) -> None:
        if self._server is None or self._serving is None:
            return
        self._server.should_exit = True
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_TIMEOUT):
                await asyncio.shield(self._serving)
        self._server.force_exit = True

    async def _listen(self) -> None:
        listening = self._socket()
        port = listening.getsockname()[1]
        parts = urlsplit(self._place.endpoint)
        if parts.port == 0:
            self.uri = f"http://{parts.hostname}:{port}"
        config = uvicorn.Config(
            self._endpoint.app(),  # type: ignore[no-untyped-call]
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._serving = asyncio.get_running_loop().create_task(self._server.serve([listening]))

    def _socket(self) -> socket.socket:
        """One address for all processes of an application: the kernel hands connections round."""
        parts = urlsplit(self._place.endpoint)
        host = self._place.bind or parts.hostname or "127.0.0.1"
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # Named, so that the loop knows it for TCP and sends small pieces at once.
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if parts.port and hasattr(socket, "SO_REUSEPORT"):
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            made.bind((host, parts.port or 0))
            made.listen(_BACKLOG)
        except OSError as error:
            made.close()
            raise ConfigurationError(
                f"cannot listen on {host}:{parts.port} for Restate ({error}); name another "
                "address with endpoint= in the store url"
            ) from error
        made.setblocking(False)
        return made


async def _is_alive(uri: str) -> bool:
    nodes = Nodes([uri])
    try:
        reply = await nodes.ask(b"GET", b"/health", (), b"", timeout=_HEALTH_TIMEOUT)
    except (UpstreamError, StoreError):
        return False
    finally:
        await nodes.close()
    return reply.status == _OK
