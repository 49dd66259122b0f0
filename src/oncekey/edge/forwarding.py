"""A delivery on its way to a service behind: to the upstream of a route, under the identity of its
webhook."""

from __future__ import annotations

from contextlib import aclosing
from urllib.parse import quote

from oncekey.core.errors import ConfigurationError, UpstreamUncertain
from oncekey.core.finality import is_final_status
from oncekey.core.model import Kind, Outcome, Takeover
from oncekey.core.scope import namespace_of
from oncekey.edge.asked import Answer, Asked
from oncekey.edge.cleaning import from_upstream, to_upstream
from oncekey.edge.concluding import kept_of
from oncekey.edge.identity.gateway import Gateway
from oncekey.edge.policy import EdgeRoute, Table
from oncekey.edge.sending import Listening
from oncekey.webhooks.acting import Answered, Broken, ForwardRequest

_METHOD = "POST"


class Forwarding:
    """Whatever names a caller in a delivery is removed, also by the names of the `gateway`."""

    def __init__(self, table: Table, gateway: Gateway | None = None) -> None:
        self._table = table
        self._gateway = gateway

    async def __call__(self, request: ForwardRequest) -> Answered | Broken:
        """Raises `UpstreamError`, and `ConfigurationError` when no route has the path."""
        route = self._route_of(request.path)
        if route is None:
            raise ConfigurationError(
                f"no route with an upstream takes POST {request.path}; add one to [[routes]]"
            )
        try:
            return Answered(*await _asked(route, request, self._gateway))
        except UpstreamUncertain as error:
            # Whoever is asked by "recover" knows the requests of clients, not deliveries.
            if route.uncertain != "rerun":
                raise
            return Broken(error, again=True)

    def takeover(self, path: str) -> Takeover:
        """What the route says of a delivery whose process died."""
        route = self._route_of(path)
        return "rerun" if route is None else route.rule.takeover

    def _route_of(self, path: str) -> EdgeRoute | None:
        route = self._table.find(_METHOD, path)
        return None if route is None or route.upstream is None else route


async def _asked(
    route: EdgeRoute, request: ForwardRequest, gateway: Gateway | None
) -> tuple[Outcome, bool]:
    rule = route.rule
    path = quote(request.path, safe="/:@!$&'()*+,;=~-._").encode()
    asked = Asked(_METHOD, request.path, path, b"", list(request.headers), "", "http")
    namespace = namespace_of(request.tenant, request.project, request.subject)
    lines = to_upstream(asked, namespace, request.key, gateway)
    listening = Listening(lambda *_: rule.max_stored_body)
    listening.ask = route.upstream.ask(_METHOD.encode(), path, lines, request.body, listening)
    status, headers, body, rest = await listening.answer()
    final = is_final_status(status, rule.store_server_errors)
    if rest is not None:
        async with aclosing(rest):
            return Outcome(Kind.UNKEPT, status), final
    return kept_of(Answer(status, from_upstream(headers, route.origin), body), rule), final
