"""Settings to objects: the edge, and another one in its place when the settings change."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from oncekey.compose.configured import rule_for
from oncekey.compose.durable import DurableWork
from oncekey.compose.identities import identities_of
from oncekey.compose.reloading import PutInForce
from oncekey.compose.schemes import schemes_of
from oncekey.compose.webhooks import SharedSources, providers_for
from oncekey.config.edge_settings import UpstreamSettings
from oncekey.config.route_settings import RouteSettings
from oncekey.config.settings import Settings
from oncekey.core.callers import Callers
from oncekey.core.ledger import Ledger
from oncekey.core.retention import DEFAULT_CLASSES
from oncekey.edge.app import Edge, EdgeApp
from oncekey.edge.document.openapi import document_of
from oncekey.edge.forwarding import Forwarding
from oncekey.edge.hooks import Hooks
from oncekey.edge.identity.identities import Identities
from oncekey.edge.policy import EdgeRoute, Policy, Table, Uncertain
from oncekey.edge.proxy import Proxy
from oncekey.edge.recovery import Recovery
from oncekey.edge.services.place import is_service, read_service
from oncekey.edge.services.proxy import ServiceProxy
from oncekey.edge.services.upstream import ServiceNodes, ServiceUpstream
from oncekey.integrations.lifespan import App
from oncekey.upstream import Upstream
from oncekey.webhooks.receiver import Receiver, Reception
from oncekey.wire.listed import LISTED

if TYPE_CHECKING:
    # It needs Restate's SDK.
    from oncekey.compose.passage import Passage


AnyUpstream = Upstream | ServiceNodes


class Built(NamedTuple):
    """An edge, and what it holds open."""

    edge: Edge
    upstreams: dict[str, AnyUpstream]
    identities: Identities
    receiver: Receiver
    passage: Passage | None
    """Through Restate, when the ledger is there."""

    def put_in_force(self) -> None:
        if self.passage is not None:
            self.passage.put_in_force()

    async def close(self, grace: float) -> None:
        try:
            for each in self.upstreams.values():
                await each.close(grace)
            await self.identities.close()
            if self.passage is not None:
                await self.passage.close()
        finally:
            self.receiver.close()


class EdgeWork:
    """The edge for one life of an application."""

    def __init__(
        self,
        settings: Settings,
        ledger: Ledger,
        durable: DurableWork | None,
        app: App,
        *,
        has_app: bool,
        reserved: Callable[[str], bool],
    ) -> None:
        self._ledger = ledger
        self._engine = None if durable is None else durable.engine
        # Those that the API of admins changes: then that holds at once.
        self._callers = Callers(ledger) if durable is None else durable.callers
        self._sources = SharedSources(ledger) if durable is None else durable.sources
        self._reception = Reception() if durable is None else durable.reception
        self._has_app = has_app
        self._reserved = reserved
        self._built = self._build(settings)
        self._put_in_force(self._built)
        self._grace = settings.server.grace
        self._retiring: set[asyncio.Task[None]] = set()
        self.app = EdgeApp(self._built.edge, app)

    async def prepare(self, settings: Settings) -> PutInForce:
        built = await asyncio.to_thread(self._build, settings)

        def put_in_force() -> None:
            old, self._built = self._built, built
            self.app.edge = built.edge
            self._put_in_force(built)
            task = asyncio.get_running_loop().create_task(self._retire(old))
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)

        return put_in_force

    def _put_in_force(self, built: Built) -> None:
        built.put_in_force()
        self._reception.receiver = built.receiver

    async def _retire(self, old: Built) -> None:
        """Requests that are under way end as they began, however long that takes: their upstreams
        are left to them, whose connections end by themselves when they rest."""
        try:
            # Who is calling is the first that a request asks.
            await asyncio.sleep(self._grace)
        finally:
            await old.identities.close()
            await asyncio.to_thread(old.receiver.close)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            for task in tuple(self._retiring):
                task.cancel()
            await asyncio.gather(*self._retiring, return_exceptions=True)
            await self._built.close(0.0)

    def _build(self, settings: Settings) -> Built:
        upstreams = upstreams_of(settings)
        table = Table(edge_routes_of(settings, upstreams))
        identities = identities_of(settings, self._ledger, self._callers)
        receiver = self._receiver(settings, table, identities)
        passage = _passage_of(settings, self._ledger)
        edge = Edge(
            table,
            passage.proxy(table, identities)
            if passage is not None
            else _proxy_of(table, identities, self._ledger),
            Recovery(table, self._ledger),
            Hooks(receiver, settings.webhooks.max_body),
            self._document(settings, table),
            settings.edge.head_timeout,
            settings.edge.body_timeout,
            settings.edge.decide,
            self._reserved,
            self._has_app,
        )
        return Built(edge, upstreams, identities, receiver, passage)

    def _document(self, settings: Settings, table: Table) -> bytes:
        # What was set at run time wins, as it does for the answers themselves.
        stored = self._ledger.store.retention()
        document = document_of(
            table.routes,
            retention={**DEFAULT_CLASSES, **settings.retention, **stored},
            schemes=schemes_of(settings),
            decides=settings.edge.decide,
        )
        return json.dumps(document).encode()

    def _receiver(self, settings: Settings, table: Table, identities: Identities) -> Receiver:
        forwarding = Forwarding(table, identities.gateway)
        return Receiver(
            self._ledger,
            self._sources.under(settings),
            providers_for(settings),
            self._engine,
            forwarding,
            takeover=forwarding.takeover,
            public_url=settings.webhooks.public_url,
        )


def _proxy_of(table: Table, identities: Identities, ledger: Ledger) -> Proxy:
    if any(isinstance(route.upstream, ServiceUpstream) for route in table.routes):
        return ServiceProxy(table, identities, ledger)
    return Proxy(table, identities, ledger)


def _passage_of(settings: Settings, ledger: Ledger) -> Passage | None:
    if getattr(ledger.store, "forwards", None) is None:
        return None
    from oncekey.compose.passage import Passage

    # Connections belong to one loop, and Restate calls on that of the store.
    upstreams = upstreams_of(settings)
    return Passage(settings, ledger, edge_routes_of(settings, upstreams), upstreams)


def upstreams_of(settings: Settings) -> dict[str, AnyUpstream]:
    return {name: _upstream_of(each, settings) for name, each in settings.upstreams.items()}


def _upstream_of(each: UpstreamSettings, settings: Settings) -> AnyUpstream:
    options: dict[str, Any] = {
        "timeout": each.timeout,
        "connect_timeout": each.connect_timeout,
        "max_connections": each.max_connections,
    }
    if is_service(each.url):
        return ServiceNodes(read_service(each.url), listed_in(settings), **options)
    return Upstream(each.url, **options)


def listed_in(settings: Settings) -> frozenset[bytes]:
    """Lines of requests that Restate may keep."""
    return LISTED | {name.encode() for name in settings.restate.headers}


def edge_routes_of(
    settings: Settings, upstreams: dict[str, AnyUpstream] | None = None
) -> tuple[EdgeRoute, ...]:
    """Those without an upstream belong to the app, or to a gateway that asks about them. Without
    `upstreams`, only to be looked at."""
    there = upstreams or {}
    return tuple(
        _route_of(each, settings, there.get(each.upstream or "")) for each in settings.routes
    )


def policy_of(each: RouteSettings) -> Policy:
    """Only what changes nothing may be without one, and then takes no key."""
    if each.policy is not None:
        return each.policy
    if each.required is None:
        return "PROHIBITED"
    return "REQUIRED_A" if each.required else "ACCEPTED"


def _route_of(each: RouteSettings, settings: Settings, upstream: AnyUpstream | None) -> EdgeRoute:
    service = isinstance(upstream, ServiceNodes)
    # Asked again with its key, Restate answers what it answered before.
    uncertain: Uncertain = "rerun" if service and each.takeover in {None, "rerun"} else "refuse"
    if each.takeover == "recover":
        uncertain = "recover"
    return EdgeRoute(
        each.path,
        policy_of(each),
        rule_for(each, settings),
        upstream.at(each.path) if isinstance(upstream, ServiceNodes) else upstream,
        each.level or "project",
        each.identity == "optional",
        each.uncertain or uncertain,
        each.source or "",
        each.title or "",
    )
