"""Settings to objects: what an edge has on Restate, when its ledger is there."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import cast

from oncekey.compose.edge import AnyUpstream, listed_in
from oncekey.config.settings import Settings
from oncekey.core.errors import OnceKeyError
from oncekey.core.ledger import Ledger
from oncekey.edge.identity.identities import Identities
from oncekey.edge.performing import Performing
from oncekey.edge.policy import EdgeRoute, Table
from oncekey.edge.proxy import Proxy
from oncekey.edge.restate import RestateProxy, Way
from oncekey.stores.restate.admin import Admin
from oncekey.stores.restate.calling import Calling
from oncekey.stores.restate.cluster import PATIENCE
from oncekey.stores.restate.holding import Holding
from oncekey.stores.restate.ingress import Ingress
from oncekey.stores.restate.store import RestateStore


class Passage:
    """`routes` and `upstreams` are those that Restate calls for, on the loop of the store; whoever
    calls Restate does so on the loop of the edge."""

    def __init__(
        self,
        settings: Settings,
        ledger: Ledger,
        routes: tuple[EdgeRoute, ...],
        upstreams: dict[str, AnyUpstream],
    ) -> None:
        # Whoever asks has found that it is the store of Restate.
        self._store = store = cast("RestateStore", ledger.store)
        self._ledger = ledger
        self._upstreams = upstreams
        self._grace = settings.server.grace
        self._performing = Performing(routes, ledger)
        place = store.place
        self._calling = Calling(place.ingress, place.space, PATIENCE)
        self._ingress, self._admin = Ingress(place.ingress), Admin(place.admin)
        holding = Holding(self._ingress, self._admin, place.space)
        self._way = Way(
            self._calling, holding, store.forwards, self._performing.handing, listed_in(settings)
        )

    def proxy(self, table: Table, identities: Identities) -> Proxy:
        return RestateProxy(table, identities, self._ledger, self._way)

    def put_in_force(self) -> None:
        """From now on, what Restate calls for goes to these routes."""
        self._store.forwards.performs = self._performing
        self._store.forwards.is_awaited = False

    async def close(self) -> None:
        """What is asked of services behind, for whichever edge, may end in time."""
        forwards = self._store.forwards
        if forwards.performs is self._performing:
            forwards.performs = None
        with suppress(OnceKeyError):
            await self._store.arun(lambda _: self._leave())
        for each in (self._calling, self._ingress, self._admin):
            await each.close()

    async def _leave(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._grace):
                await self._store.forwards.drain()
        for each in self._upstreams.values():
            await each.close()
