"""What is read of durable work, as steps of named SQL."""

from __future__ import annotations

from oncekey.core.execution import Sort
from oncekey.core.work import (
    Events,
    FindExecution,
    FindPromise,
    Known,
    ListExecutions,
    ListPromises,
    ReadJournal,
    Waits,
)
from oncekey.stores.requests import Setting
from oncekey.stores.work.executions import Steps
from oncekey.stores.work.promises import find
from oncekey.stores.work.rows import entry_of, event_of, execution_of, promise_of

_LAST = (1 << 63) - 1


def find_execution(request: FindExecution, setting: Setting) -> Steps:
    rows = yield "find_execution", {"id": request.id, "tenant": request.tenant}
    return execution_of(rows[0]) if rows else None


def read_journal(request: ReadJournal, setting: Setting) -> Steps:
    rows = yield "journal", {"execution": request.id}
    return [entry_of(row) for row in rows]


def find_promise(request: FindPromise, setting: Setting) -> Steps:
    return (yield from find(request.target))


def list_executions(request: ListExecutions, setting: Setting) -> Steps:
    values = {
        "tenant": request.tenant,
        "status": None if request.status is None else int(request.status),
        "name": request.name,
        "sort": None if request.sort is None else int(request.sort),
        "before": _LAST if request.before is None else request.before,
        "limit": request.limit,
    }
    return [execution_of(row) for row in (yield "list_executions", values)]


def list_promises(request: ListPromises, setting: Setting) -> Steps:
    values = {
        "tenant": request.tenant,
        "state": None if request.state is None else int(request.state),
        "kind": None if request.kind is None else int(request.kind),
        "execution": request.execution,
        "before": _LAST if request.before is None else request.before,
        "limit": request.limit,
    }
    return [promise_of(row) for row in (yield "list_promises", values)]


def waits(request: Waits, setting: Setting) -> Steps:
    return [promise_of(row) for row in (yield "waits", request._asdict())]


def events(request: Events, setting: Setting) -> Steps:
    values = {**request._asdict(), "unmatched": int(request.unmatched)}
    return [event_of(row) for row in (yield "events", values)]


def known(request: Known, setting: Setting) -> Steps:
    return [(Sort(sort), name) for sort, name in (yield "known", {})]
