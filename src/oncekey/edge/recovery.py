"""What became of a request whose answer was lost: by its key, or by its operation id.

Only whoever made the request is told. Everybody else gets what somebody gets who made one up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from oncekey.core.errors import KeyInvalid, OnceKeyError
from oncekey.core.key import check_key
from oncekey.core.ledger import Ledger
from oncekey.core.model import Ref, number_of
from oncekey.core.ports import Found
from oncekey.core.scope import PLATFORM_LEVEL, TENANT_LEVEL, Scope, namespace_of
from oncekey.edge.decide import namespace_at
from oncekey.edge.identity.identities import Known
from oncekey.edge.policy import EdgeRoute, Table
from oncekey.wire.exchange import replay_of
from oncekey.wire.problem import Response, problem, problem_of
from oncekey.wire.replies import in_flight

OPERATIONS = "/api/v1/operations/"
BY_KEY = "/by-idempotency-key/"
LONGEST_WAIT = 30.0

_OUTPUT = "/output"
_BY_KEY = re.compile(rf"(/.*){BY_KEY}([^/]+?)({_OUTPUT})?", re.DOTALL)
_LAPSED = (
    "The process that ran it died. Send the same request again with the same key: it is run again "
    "where the route allows it, and else you are told so."
)


class Recovery:
    def __init__(self, table: Table, ledger: Ledger) -> None:
        self._table = table
        self._ledger = ledger

    def routes_of(self, path: str) -> tuple[EdgeRoute, ...]:
        """The routes whose keys this path asks for; none when it is another kind of path."""
        found = _BY_KEY.fullmatch(path)
        return tuple(self._keyed(found[1])) if found else ()

    async def by_key(
        self, path: str, routes: tuple[EdgeRoute, ...], known: Known | None, own: str
    ) -> Response:
        """`own` is the namespace of callers of the app, who are known by their credentials."""
        found = _BY_KEY.fullmatch(path)
        assert found is not None
        try:
            key = check_key(found[2])
        except KeyInvalid:
            return problem("not-found")
        refs = tuple(
            Ref(Scope(namespace, route.place(method)), key)
            for route in routes
            for namespace in _namespaces_at(route, known, own)
            for method in sorted(route.rule.methods)
        )
        longest = max(route.rule.attach_timeout for route in routes)
        return await self._answer(refs, known, own, 0.0 if found[3] else min(longest, LONGEST_WAIT))

    async def by_operation(self, path: str, known: Known | None, own: str) -> Response:
        name = path.removeprefix(OPERATIONS)
        at_once = name.endswith(_OUTPUT)
        number = number_of(name.removesuffix(_OUTPUT))
        if number is None:
            return problem("not-found")
        return await self._answer((number,), known, own, 0.0 if at_once else LONGEST_WAIT)

    def _keyed(self, path: str) -> Iterator[EdgeRoute]:
        for route in self._table.matching(path):
            if route.keyed:
                yield route

    async def _answer(
        self, refs: tuple[Ref | int, ...], known: Known | None, own: str, wait: float
    ) -> Response:
        try:
            found = await self._newest(refs, _namespaces_of(known) | {own})
            if found is None:
                return problem("not-found")
            return await self._told(found, wait)
        except OnceKeyError as error:
            return problem_of(error)

    async def _newest(self, refs: tuple[Ref | int, ...], own: frozenset[str]) -> Found | None:
        """A key may have been used with several methods of a route; the last time is meant."""
        looked = [await self._ledger.alook(ref) for ref in refs]
        seen = [each for each in looked if each is not None]
        mine = [each for each in seen if each.record.ref.scope.namespace in own]
        return max(mine, key=lambda each: each.record.id, default=None)

    async def _told(self, found: Found, wait: float) -> Response:
        record = found.record
        if record.outcome is None and not found.lapsed and wait:
            settled = await self._ledger.aattach(record.ref, wait)
            if settled is not None and settled.id == record.id:
                return replay_of(settled)
            again = await self._ledger.alook(record.ref)
            if again is None or again.record.id != record.id:
                # Given back meanwhile: as if it had not been.
                return problem("not-found")
            found = again
        if found.record.outcome is not None:
            return replay_of(found.record)
        if found.lapsed:
            return problem("outcome-unknown", _LAPSED, operation_id=record.operation_id)
        return in_flight(record.operation_id)


def _namespaces_at(route: EdgeRoute, known: Known | None, own: str) -> tuple[str, ...]:
    if route.upstream is None:
        return (own,)
    if known is None or (route.level == "platform") != (known.role == "admin"):
        return ()
    return (namespace_at(route, known),)


def _namespaces_of(known: Known | None) -> frozenset[str]:
    """Whose operations are a caller's own: its keys at each level."""
    if known is None:
        return frozenset()
    tenant, subject = known.identity.tenant, known.identity.subject
    if known.role == "admin":
        return frozenset({namespace_of(tenant, PLATFORM_LEVEL, subject)})
    projects = (known.identity.project, TENANT_LEVEL)
    return frozenset(namespace_of(tenant, project, subject) for project in projects)
