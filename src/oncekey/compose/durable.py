"""Settings to objects: durable work beside an application, and the API in front of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Protocol

from oncekey.api import health
from oncekey.api.admin.means import Means
from oncekey.api.app import Api
from oncekey.api.endpoint import Endpoint
from oncekey.api.table import ENDPOINTS
from oncekey.compose.admin import means_of
from oncekey.compose.reloading import PutInForce
from oncekey.compose.schedules import scheduler_of
from oncekey.compose.webhooks import SharedSources
from oncekey.config.settings import Settings
from oncekey.core.callers import Callers
from oncekey.core.census import Censuses
from oncekey.core.ledger import Ledger
from oncekey.durable.app import App as Workflows
from oncekey.durable.choice import engine_for
from oncekey.integrations.lifespan import App, Receive, Scope, Send
from oncekey.observe.pulse import Pulse
from oncekey.webhooks.receiver import Reception


class DurableWork:
    """The engine, the scheduler and gRPC, for one life of an application.

    Without `workflows` it starts, settles and looks; other processes run what is started. One that
    is only `asked` does nothing by itself: an app that admins look after is not one that has
    schedules, or none, and needs no connections to hear of work.
    """

    def __init__(
        self,
        settings: Settings,
        ledger: Ledger,
        workflows: Workflows | None,
        pulse: Pulse | None = None,
        *,
        asked: bool = False,
    ) -> None:
        grace = settings.server.grace
        self._server = settings.server
        self._ledger = ledger
        self._workflows = workflows
        self.engine = (
            engine_for(ledger, grace=grace, watch=not asked)
            if workflows is None
            else workflows.engine_on(ledger, grace=grace)
        )
        self._scheduler = (
            None if asked else scheduler_of(settings, ledger, self.engine, grace=grace)
        )
        self.callers = Callers(ledger)
        self.sources = SharedSources(ledger)
        self.censuses = Censuses(ledger)
        self.reception = Reception()
        self._pulse = pulse
        self.offers_api = offers_api(settings, workflows)
        self.api = Api(
            self.engine,
            self.callers,
            ledger,
            self._means_under(settings),
            endpoints=_endpoints(settings, offers_api=self.offers_api),
        )
        self.grpc_port: int | None = None
        """Where gRPC listens, once it does."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open until the block ends. Then running steps get their time, and others the rest."""
        async with AsyncExitStack() as stack:
            if self._workflows is None:
                await self.engine.open()
                stack.push_async_callback(self.engine.close)
            else:
                await stack.enter_async_context(self._workflows.using(self.engine))
            if self._scheduler is not None:
                await stack.enter_async_context(self._scheduler)
            await self._listen(stack)
            yield

    async def prepare(self, settings: Settings) -> PutInForce:
        """Of all this, only what admins work with can change."""
        means = await asyncio.to_thread(self._means_under, settings)

        def put_in_force() -> None:
            self.api.means = means

        return put_in_force

    def _means_under(self, settings: Settings) -> Means | None:
        return means_of(
            settings,
            self._ledger,
            self.callers,
            self.sources,
            self.censuses,
            self.reception,
            self._pulse,
        )

    async def _listen(self, stack: AsyncExitStack) -> None:
        server = self._server
        if server.grpc_port is None:
            return
        from oncekey.api.grpc.server import serve_grpc

        grpc = await serve_grpc(
            self.engine,
            self.callers,
            self._ledger,
            server.host,
            server.grpc_port,
            shares_port=server.workers > 1,
        )
        stack.push_async_callback(grpc.stop, server.grace)
        self.grpc_port = grpc.port


class Owner(Protocol):
    """An app with paths of its own."""

    def has(self, path: str) -> bool: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class Front:
    """Apps on paths of their own, of which the first that has one is asked; another on the rest."""

    def __init__(self, owners: Sequence[Owner], app: App) -> None:
        self._owners = owners
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """What to await. No request to the app waits in here as well."""
        if scope["type"] == "http":
            path = scope["path"]
            for owner in self._owners:
                if owner.has(path):
                    return owner(scope, receive, send)
        return self._app(scope, receive, send)


def _endpoints(settings: Settings, *, offers_api: bool) -> Sequence[Endpoint]:
    """Whoever watches over an edge asks it how it is; an app answers that itself."""
    if offers_api:
        return ENDPOINTS
    return health.ENDPOINTS if settings.upstreams else ()


def offers_api(settings: Settings, workflows: Workflows | None) -> bool:
    """Whether callers can start and settle work over HTTP."""
    return workflows is not None if settings.server.api is None else settings.server.api
