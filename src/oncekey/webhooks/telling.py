"""What those who watch are told of deliveries: one event for each item, and how long it took."""

from __future__ import annotations

from oncekey.core.deliveries import Verdict
from oncekey.core.errors import IdentifierMissing, OnceKeyError
from oncekey.core.events import Seen, Way
from oncekey.core.ledger import Ledger
from oncekey.core.model import Headers
from oncekey.core.scope import namespace_of
from oncekey.webhooks.handling import Result
from oncekey.webhooks.naming import place_of
from oncekey.webhooks.sources import SUBJECT, Source

_WAYS: dict[Verdict, Way] = {
    "accepted": "new",
    "replayed": "replay",
    "repeated-body": "replay",
    "in-flight": "conflict",
    "refused": "refused",
    "failed": "failed",
    "released": "failed",
    "uncertain": "failed",
}


class Telling:
    def __init__(self, ledger: Ledger) -> None:
        self._watch = ledger.watch
        self._observe = ledger.observe

    def begin(self, source: Source, headers: Headers) -> Seen | None:
        if self._watch is None:
            return None
        seen = self._watch.begin(place_of(source.provider))
        seen.namespace = _namespace_of(source)
        seen.policy, seen.source = "REQUIRED_B", source.provider
        if self._watch.tracing is not None:
            self._watch.tracing.begin(seen, headers)
        return seen

    def lose(self, place: str, status: int, began: float) -> None:
        """Of a delivery to a webhook that cannot be looked up now."""
        if self._watch is not None:
            seen = self._watch.begin(place, began)
            seen.policy, seen.way = "REQUIRED_B", "failed"
            self._watch.end(seen, status)

    def end(self, seen: Seen | None, status: int, verdicts: list[Verdict]) -> None:
        """Of a batch the way of its items, when they all went the same."""
        if self._watch is None or seen is None:
            return
        ways = {_WAYS[each] for each in verdicts}
        if len(ways) == 1:
            seen.way = ways.pop()
        self._watch.end(seen, status)

    def refuse(self, source: Source, verdict: Verdict, error: OnceKeyError) -> None:
        place, namespace = place_of(source.provider), _namespace_of(source)
        self._observe(f"webhook-{verdict}", place, namespace, source.provider)
        if isinstance(error, IdentifierMissing):
            self._observe("translation-failed", place, namespace, source.provider)

    def tell(self, source: Source, result: Result, seen: Seen | None, key: str) -> None:
        """Of one item."""
        place, namespace, observe = place_of(source.provider), _namespace_of(source), self._observe
        observe("key-present", place, namespace, "B")
        observe(f"webhook-{result.verdict}", place, namespace, source.provider)
        match result.verdict:
            case "replayed":
                observe("replay", place, namespace, result.response.status)
            case "in-flight":
                observe("busy", place, namespace)
            case "uncertain":
                observe("uncertain", place, namespace)
            case _:
                pass
        if seen is not None:
            seen.case, seen.operation = "B", result.operation or 0
            seen.key = f"{namespace}:{key}"


def _namespace_of(source: Source) -> str:
    return namespace_of(source.tenant, source.project, SUBJECT)
