"""What those who watch are told of requests at the edge, off the ways that must be quick."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from oncekey.core.events import Observer, Seen
from oncekey.core.ledger import Ledger
from oncekey.core.model import Record
from oncekey.core.telling import replayed_status
from oncekey.edge.decide import Pass, Protect, Verdict, namespace_at
from oncekey.edge.identity.known import Known
from oncekey.edge.policy import EdgeRoute
from oncekey.wire.headers import trouble_in

DERIVED, FOREIGN = "HANDLER_INTERNAL_C", "REQUIRED_B"


def tell_verdict(
    observe: Observer,
    route: EdgeRoute,
    method: str,
    keys: Sequence[bytes],
    known: Known,
    verdict: Verdict,
) -> None:
    """Of a request that a gateway carries, and that is not seen otherwise."""
    if isinstance(verdict, Protect):
        observe("key-present", route.place(method), verdict.namespace, "A")
    else:
        tell_unkeyed(observe, route, method, keys, namespace_at(route, known))


def tell_unkeyed(
    observe: Observer, route: EdgeRoute, method: str, keys: Sequence[bytes], namespace: str
) -> None:
    """Of a request whose key is refused, missing, or none of ours."""
    if route.policy == DERIVED:
        observe("key-present", route.place(method), namespace, "C")
    elif route.policy == FOREIGN:
        observe("key-missing", route.place(method), namespace, FOREIGN)
    elif keys or (route.keyed and method in route.rule.methods):
        event, detail = trouble_in(keys, route.rule)
        observe(event, route.place(method), namespace, detail)


def note_verdict(seen: Seen, verdict: Pass | Protect) -> None:
    """It is let in."""
    seen.namespace = verdict.namespace
    if isinstance(verdict, Protect):
        seen.way, seen.case, seen.source, seen.key = "new", "A", "header", verdict.key
    else:
        seen.way = "passed"
        if seen.policy == DERIVED:
            seen.case, seen.source = "C", "derived"


def handling(seen: Seen | None) -> AbstractContextManager[None]:
    """While the service behind is asked."""
    return nullcontext() if seen is None or seen.span is None else seen.span.handling()


def note_replay(ledger: Ledger, seen: Seen, record: Record) -> None:
    """It is answered from memory."""
    seen.way, seen.operation = "replay", record.id
    if seen.span is not None:
        seen.span.replays(record.outcome)
    namespace = record.ref.scope.namespace
    ledger.observe("replay", seen.endpoint, namespace, replayed_status(record.outcome))
