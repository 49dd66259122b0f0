"""The log of deliveries, as steps of named SQL."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from oncekey.core.deliveries import KeepDeliveries, ListDeliveries, LoggedDelivery
from oncekey.stores.requests import Row, Setting, Step, Steps

Answers = Generator[Step, list[Row], Any]

_LAST = (1 << 63) - 1


def _keep(keep: KeepDeliveries, _: Setting) -> Answers:
    for delivery in keep.deliveries:
        yield "keep_delivery", delivery._asdict()
    return True


def _list(query: ListDeliveries, _: Setting) -> Answers:
    before = _LAST if query.before is None else query.before
    rows = yield "list_deliveries", {**query._asdict(), "before": before}
    return [LoggedDelivery(*row) for row in rows]


PLANS: dict[type, Callable[[Any, Setting], Steps]] = {
    KeepDeliveries: _keep,
    ListDeliveries: _list,
}
READS: frozenset[type] = frozenset({ListDeliveries})
