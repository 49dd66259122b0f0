"""The oracle of the log of deliveries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oncekey.core.deliveries import KeepDeliveries, ListDeliveries, LoggedDelivery
from oncekey.core.looking import Looked
from oncekey.stores.memory.looking import looked


class MemoryDeliveries:
    def __init__(self) -> None:
        self._kept: dict[int, LoggedDelivery] = {}

    def answers(self) -> dict[type, Callable[[Any], Any]]:
        return {KeepDeliveries: self._keep, ListDeliveries: self._list}

    def count_expired(self, now: int) -> int:
        return len(self._expired(now))

    def sweep(self, now: int, limit: int) -> int:
        expired = self._expired(now)[:limit]
        for number in expired:
            del self._kept[number]
        return len(expired)

    def _expired(self, now: int) -> list[int]:
        return [number for number, each in self._kept.items() if each.expires_at <= now]

    def _keep(self, keep: KeepDeliveries) -> bool:
        for delivery in keep.deliveries:
            self._kept.setdefault(delivery.id, delivery)
        return True

    def _list(self, query: ListDeliveries) -> Looked[LoggedDelivery]:
        def fits(each: LoggedDelivery) -> bool:
            return (
                query.webhook in {None, each.webhook}
                and query.verdict in {None, each.verdict}
                and query.operation in {None, each.operation}
                and query.identifier in {None, each.identifier}
            )

        return looked(sorted(self._kept.values(), reverse=True), query, fits)
