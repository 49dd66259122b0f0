"""What is read of durable work, as steps of named SQL."""

from __future__ import annotations

from oncekey.core.execution import Sort, in_order
from oncekey.core.identifier import first_number
from oncekey.core.work import (
    Events,
    FindExecution,
    FindPromise,
    Known,
    ReadJournal,
    Unmatched,
    Waits,
)
from oncekey.stores.requests import Setting
from oncekey.stores.work.executions import Steps
from oncekey.stores.work.promises import find
from oncekey.stores.work.rows import entry_of, event_of, execution_of, promise_of

_CLOCKS_DIFFER = 60_000


def find_execution(request: FindExecution, setting: Setting) -> Steps:
    rows = yield "find_execution", {"id": request.id, "tenant": request.tenant}
    return execution_of(rows[0]) if rows else None


def read_journal(request: ReadJournal, setting: Setting) -> Steps:
    rows = yield "journal", {"execution": request.id}
    return in_order(entry_of(row) for row in rows)


def find_promise(request: FindPromise, setting: Setting) -> Steps:
    return (yield from find(request.target))


def waits(request: Waits, setting: Setting) -> Steps:
    return [promise_of(row) for row in (yield "waits", request._asdict())]


def events(request: Events, setting: Setting) -> Steps:
    # Numbers are drawn in the order of time: what is older need not be looked at.
    after = max(request.after, first_number(request.since - _CLOCKS_DIFFER))
    return [event_of(row) for row in (yield "events", {**request._asdict(), "after": after})]


def unmatched(request: Unmatched, setting: Setting) -> Steps:
    return [event_of(row) for row in (yield "unmatched_events", request._asdict())]


def known(request: Known, setting: Setting) -> Steps:
    return [(Sort(sort), name) for sort, name in (yield "known", {})]
