"""Walk 3 to services on Restate, which remembers answers as well: when the ledger has none, what
Restate remembers is over."""

from __future__ import annotations

from dataclasses import replace

from oncekey.core.claim import Claim
from oncekey.core.ledger import Ledger
from oncekey.edge.asked import Answer, Asked
from oncekey.edge.decide import Protect
from oncekey.edge.identity.identities import Identities
from oncekey.edge.policy import Table
from oncekey.edge.proxy import Admitted, Proxy, Whole
from oncekey.edge.services.upstream import ServiceUpstream


class ServiceProxy(Proxy):
    def __init__(self, table: Table, identities: Identities, ledger: Ledger) -> None:
        super().__init__(table, identities, ledger)
        self._renewing = {
            id(route): replace(route, upstream=route.upstream.renewing())
            for route in table.routes
            if isinstance(route.upstream, ServiceUpstream)
        }

    async def _run(
        self, asked: Asked, admitted: Admitted, verdict: Protect, body: Whole, claim: Claim
    ) -> Answer:
        # A claim that was taken over may have been answered to the one who died.
        renewing = self._renewing.get(id(admitted.route)) if claim.fence == 1 else None
        if renewing is not None:
            admitted = admitted._replace(route=renewing)
        return await super()._run(asked, admitted, verdict, body, claim)
