"""The log of deliveries, as steps of named SQL."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from oncekey.core.deliveries import KeepDeliveries, ListDeliveries, LoggedDelivery
from oncekey.core.looking import Looked
from oncekey.stores.requests import Row, Setting, Step, Steps
from oncekey.stores.windows import Span, look_through

Answers = Generator[Step, list[Row], Any]


def _keep(keep: KeepDeliveries, _: Setting) -> Answers:
    for delivery in keep.deliveries:
        yield "keep_delivery", delivery._asdict()
    return True


def _list(query: ListDeliveries, _: Setting) -> Answers:
    rows = yield from look_through([_span_of(query)], query.before, query.limit, query.look)
    return Looked((LoggedDelivery(*row) for row in rows), rows.to)


def _span_of(query: ListDeliveries) -> Span:
    values = {"verdict": query.verdict, "identifier": query.identifier}
    if query.operation is not None:
        whose = {"operation": query.operation, "webhook": query.webhook}
        return Span("list_deliveries_for", None, {**values, **whose})
    picks = query.verdict is not None or query.identifier is not None
    name = "list_deliveries"
    if query.webhook is not None:
        name, values = "list_deliveries_of", {**values, "webhook": query.webhook}
    return Span(name, f"{name}_edge" if picks else None, values)


PLANS: dict[type, Callable[[Any, Setting], Steps]] = {
    KeepDeliveries: _keep,
    ListDeliveries: _list,
}
READS: frozenset[type] = frozenset({ListDeliveries})
