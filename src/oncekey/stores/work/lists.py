"""Lists of durable work, as steps of named SQL: each leads through the index with the fewest."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from oncekey.core.execution import PromiseKind, Status
from oncekey.core.looking import Looked
from oncekey.core.work import ListEvents, ListExecutions, ListPromises
from oncekey.stores.requests import Row, Setting, Step
from oncekey.stores.windows import Span, look_through
from oncekey.stores.work.executions import Steps
from oncekey.stores.work.rows import event_of, execution_of, promise_of

_LIVE = {Status.READY, Status.RUNNING}
_STUCK = {Status.FAILED, Status.PAUSED}

Query = ListExecutions | ListPromises | ListEvents


def list_executions(request: ListExecutions, setting: Setting) -> Steps:
    return (yield from _listed(request, _executions_span(request), execution_of))


def list_promises(request: ListPromises, setting: Setting) -> Steps:
    return (yield from _listed(request, _promises_span(request), promise_of))


def list_events(request: ListEvents, setting: Setting) -> Steps:
    return (yield from _listed(request, _events_span(request), event_of))


def _listed(
    request: Query, span: Span, value_of: Callable[[Row], Any]
) -> Generator[Step, list[Row], Looked[Any]]:
    rows = yield from look_through([span], request.before, request.limit, request.look)
    return Looked(map(value_of, rows), rows.to)


def _executions_span(request: ListExecutions) -> Span:
    tenant, status, name, sort, *_ = request
    values = {
        "tenant": tenant,
        "status": None if status is None else int(status),
        "name": name,
        "sort": None if sort is None else int(sort),
    }
    if status in _LIVE:
        return Span("list_live", None, values)
    if status in _STUCK:
        return Span("list_stuck", "list_stuck_edge", values)
    query = "list_executions" if tenant is None else "list_executions_of"
    picks = (status, name, sort) != (None, None, None)
    return Span(query, f"{query}_edge" if picks else None, values)


def _promises_span(request: ListPromises) -> Span:
    tenant, state, kind, execution, *_ = request
    if execution is None:
        kind = kind or PromiseKind.PROMISE
    values = {
        "tenant": tenant,
        "state": None if state is None else int(state),
        "kind": None if kind is None else int(kind),
        "key": request.key,
    }
    if execution is not None:
        return Span("list_promises_within", None, {**values, "execution": execution})
    if tenant is None or kind is not PromiseKind.PROMISE:
        # A key stands in another table.
        weight = 1 if request.key is None else 2
        return Span("list_promises", "list_promises_edge", values, weight=weight)
    picks = state is not None or request.key is not None
    return Span("list_promises_of", "list_promises_of_edge" if picks else None, values)


def _events_span(request: ListEvents) -> Span:
    tenant, topic, *_ = request
    values = {"tenant": tenant, "topic": topic}
    if tenant is None:
        return Span("list_events", None if topic is None else "list_events_edge", values)
    return Span("list_events_of" if topic is None else "list_events_of_topic", None, values)
