"""Which steps carry out what durable work asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oncekey.core import work
from oncekey.core.census import Census
from oncekey.stores.requests import Setting, Steps
from oncekey.stores.work import (
    awaiting,
    census,
    control,
    events,
    executions,
    lists,
    promises,
    reads,
    resolving,
    tidying,
)

PLANS: dict[type, Callable[[Any, Setting], Steps]] = {
    work.Start: executions.start,
    work.Withdraw: executions.withdraw,
    work.Advance: executions.advance,
    work.PickUp: executions.pick_up,
    work.HandBack: executions.hand_back,
    work.Mine: executions.mine,
    work.Load: executions.load,
    work.Await: awaiting.wait_for,
    work.Spawn: awaiting.spawn,
    work.Make: promises.make,
    work.AddToken: awaiting.add_token,
    work.Resolve: resolving.resolve,
    work.Match: promises.match,
    work.Publish: events.publish,
    work.Matched: events.matched,
    work.Control: control.control,
    work.Due: tidying.due,
    work.Rewind: tidying.rewind,
    work.Forget: tidying.forget,
    work.Know: tidying.know,
    work.FindExecution: reads.find_execution,
    work.ReadJournal: reads.read_journal,
    work.FindPromise: reads.find_promise,
    work.ListExecutions: lists.list_executions,
    work.ListPromises: lists.list_promises,
    work.Waits: reads.waits,
    work.Events: reads.events,
    work.ListEvents: lists.list_events,
    work.Unmatched: reads.unmatched,
    work.Known: reads.known,
    work.Lives: executions.lives,
    Census: census.count,
}

READS: frozenset[type] = frozenset(
    {
        work.FindExecution,
        work.ReadJournal,
        work.FindPromise,
        work.ListExecutions,
        work.ListPromises,
        work.Waits,
        work.Events,
        work.ListEvents,
        work.Unmatched,
        work.Known,
        work.Lives,
        work.Mine,
        Census,
    }
)
