"""Where Restate calls this process: an HTTP server for the shared objects, and for its own work."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, cast
from urllib.parse import urlsplit

import uvicorn
from restate._internal import IdentityVerificationException, PyIdentityVerifier
from restate.endpoint import Endpoint as Served
from restate.entry_codec import JournalValueCodec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from oncekey.core.errors import ConfigurationError
from oncekey.stores.restate.brief import Function, answer_briefly
from oncekey.stores.restate.deployments import Deployment, Deployments
from oncekey.stores.restate.listening import let_go, listening_at
from oncekey.stores.restate.objects import is_brief
from oncekey.stores.restate.place import RestatePlace

# Restate keeps its connections; one that is closed under a call is a call made again.
_KEEP_ALIVE = 24 * 3600
_STOP_TIMEOUT = 5.0
# Restate itself tries for two seconds; an address that takes longer is nobody's.
_REACH_TIMEOUT = 5.0
_INVOKE = "invoke"

AsgiApp = Callable[[Any, Any, Any], Awaitable[None]]


class _AsTheyAre(JournalValueCodec):
    """Values are not changed. Restate's SDK compares what a handler that is called again writes and
    returns with the first time, unless there is a codec: what it has of the first time counts, and
    an object must not be shut for ever because another process would answer in other words."""

    def encode(self, buf: bytes) -> bytes:
        return buf

    async def decode(self, buf: bytes) -> bytes:
        return buf


class _Settings(uvicorn.Config):
    """uvicorn's loggers belong to whoever serves the app in this process, most often uvicorn: its
    access log must not fall silent because there is an endpoint."""

    def configure_logging(self) -> None:
        pass


class _Unlogged(HttpToolsProtocol):
    """Calls of Restate are not requests of the app's callers: its access log has none of them."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.access_log = False


class Post:
    """Services at one path of the endpoint: to Restate, a deployment of its own."""

    def __init__(self, name: str, identity: str) -> None:
        self.name = name
        self._served = Served()  # type: ignore[no-untyped-call]
        if identity:
            self._served.identity_keys.append(identity)
        self._served.set_journal_value_codec(_AsTheyAre())
        self._app: AsgiApp = self._served.app()  # type: ignore[no-untyped-call]
        self._verifier = PyIdentityVerifier(self._served.identity_keys)
        self.rests = False

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._served.services)

    @property
    def serves(self) -> bool:
        return bool(self.names) and not self.rests

    def add(self, *services: Any) -> None:
        self.remove(*(each.name for each in services))
        self._served.bind(*services)

    def remove(self, *names: str) -> None:
        for name in names:
            self._served.services.pop(name, None)

    async def answer(self, scope: Any, receive: Any, send: Any) -> None:
        function = self._brief(scope["path"])
        if function is None:
            await self._app(scope, receive, send)
            return
        lines = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        ]
        try:
            self._verifier.verify(lines, scope["path"])
        except IdentityVerificationException:
            await _refuse(send, 401)
        else:
            await answer_briefly(function, lines, receive, send)

    def _brief(self, path: str) -> Function | None:
        parts = path.split("/")
        if parts[-3:-2] != [_INVOKE]:
            return None
        service = self._served.services.get(parts[-2])
        declared = None if service is None else service.handlers.get(parts[-1])
        if declared is None or not is_brief(declared):
            return None
        return cast("Function", declared.fn)


class Endpoint:
    """`objects` are those every ledger on the cluster shares; one process serves them for all, or
    several at one address (`shares`). What else there is to serve is this process's own."""

    def __init__(
        self,
        place: RestatePlace,
        deployments: Deployments,
        objects: list[Any],
        *,
        shares: bool = False,
    ) -> None:
        self._place = place
        self._deployments = deployments
        self._objects = objects
        self._shares = shares
        self._shared = Post("objects", place.identity)
        self._own = Post("work", place.identity)
        self._server: uvicorn.Server | None = None
        self._listening: socket.socket | None = None
        self._serving: asyncio.Task[None] | None = None
        self.uri = place.endpoint
        self.host_uri = ""
        """Where the shared objects are served, as far as is known here."""

    @property
    def listens(self) -> bool:
        return self._serving is not None

    @property
    def hosts(self) -> bool:
        """Whether the shared objects are served here."""
        return bool(self._shared.names)

    @property
    def work_uri(self) -> str:
        """Where Restate calls this process for its own work."""
        return self._uri_of(self._own)

    async def open(self) -> None:
        """Serve the shared objects, unless somebody else does."""
        there = await self._host()
        if there is None or self._is_here(there) or not await self._is_reached(there):
            await self.host()

    async def host(self) -> None:
        """Serve the shared objects from now on, in place of whoever did."""
        self._listen()
        self._shared.add(*self._objects)
        await self._register(self._shared, await self._host())
        self.host_uri = self.uri

    def try_out(self) -> str:
        """Serve the shared objects without a word to anybody; answers where."""
        self._listen()
        self._shared.add(*self._objects)
        return self._uri_of(self._shared)

    async def serve(self, *services: Any) -> None:
        """Serve these as well, and let Restate know."""
        self._listen()
        self._own.add(*services)
        self._own.rests = False
        await self._register(self._own, None)

    def rest(self) -> None:
        """Do none of its own work for now: Restate cannot reach it here, so that others take it
        over. It stays registered: Restate would not know what to do with calls that are left."""
        self._own.rests = True

    async def keep_up(self) -> None:
        """What was forgotten by the cluster, or was served by a process that is gone, is served
        again. Raises when that cannot be."""
        if not self.hosts:
            await self.open()
        if self.hosts:
            await self._keep(self._shared)
        if self._own.serves:
            await self._keep_own()

    async def close(self) -> None:
        if self._server is None or self._serving is None:
            return
        self._server.should_exit = True
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_TIMEOUT):
                await asyncio.shield(self._serving)
        self._server.force_exit = True
        # Whoever still waits for an answer there asks elsewhere.
        for each in tuple(self._server.server_state.connections):
            each.transport.abort()

    def let_go(self) -> None:
        """In a forked child: whatever Restate sends to the parent must not wait here, where nobody
        reads it, when the parent is gone."""
        if self._server is None or self._listening is None:
            return
        open_ones = [each.transport for each in self._server.server_state.connections]
        sockets = [each.get_extra_info("socket") for each in open_ones]
        let_go([self._listening, *filter(None, sockets)])

    # -- what Restate knows of it ----------------------------------------------------------

    async def _keep(self, post: Post) -> None:
        there = await self._deployments.serving(min(post.names))
        if there is None:
            await self._register(post, None)
        elif there.uri != self._uri_of(post) and not await self._is_reached(there):
            await self._register(post, there)

    async def _keep_own(self) -> None:
        """Others may have some of it: whoever came last."""
        places = await self._deployments.places_of(self._own.names)
        others = set(places.values()) - {self._uri_of(self._own)}
        reached = [
            await self._deployments.is_reached(uri, patience=_REACH_TIMEOUT) for uri in others
        ]
        if places.keys() != self._own.names or not all(reached):
            await self._register(self._own, None)

    async def _register(self, post: Post, there: Deployment | None) -> None:
        """`there`: who had these services so far, and is gone. What it has begun goes on here."""
        uri = self._uri_of(post)
        if there is not None and there.uri != uri and there.names <= post.names:
            await self._deployments.move(there, uri)
        else:
            await self._deployments.register(uri)

    async def _host(self) -> Deployment | None:
        there = await self._deployments.serving(self._objects[0].name)
        self.host_uri = "" if there is None else there.uri.removesuffix(f"/{self._shared.name}")
        return there

    def _is_here(self, there: Deployment) -> bool:
        """Whether it is the address of this process, where nobody else listens."""
        if there.uri != self._uri_of(self._shared):
            return False
        try:
            self._listen()
        except ConfigurationError:
            return False
        return True

    async def _is_reached(self, there: Deployment) -> bool:
        return await self._deployments.is_reached(there.uri, patience=_REACH_TIMEOUT)

    def _uri_of(self, post: Post) -> str:
        return f"{self.uri}/{post.name}"

    # -- the server ------------------------------------------------------------------------

    def _listen(self) -> None:
        if self._serving is not None:
            return
        listening = self._listening = listening_at(self._place, shares=self._shares)
        parts = urlsplit(self._place.endpoint)
        if parts.port == 0:
            named = parts._replace(netloc=f"{parts.netloc[:-1]}{listening.getsockname()[1]}")
            self.uri = named.geturl()
        config = _Settings(
            self._answer,
            interface="asgi3",
            http=_Unlogged,
            ws="none",
            lifespan="off",
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._serving = asyncio.get_running_loop().create_task(self._server.serve([listening]))

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        parts = scope["path"].split("/")
        within = parts[:-3] if parts[-3:-2] == [_INVOKE] else parts[:-1]
        for post in (self._shared, self._own):
            if post.serves and within and within[-1] == post.name:
                await post.answer(scope, receive, send)
                return
        await _refuse(send, 503)


async def _refuse(send: Any, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b""})
