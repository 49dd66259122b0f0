"""What time does to durable work, as steps of named SQL: it settles what is due, and forgets."""

from __future__ import annotations

import json
from collections.abc import Generator

from oncekey.core.answers import Ripe, Settled, Woken
from oncekey.core.execution import Promise, PromiseKind, PromiseState, Status
from oncekey.core.identifier import first_number
from oncekey.core.work import Due, Ending, Forget, Know, Rewind
from oncekey.stores.requests import Row, Setting, Step
from oncekey.stores.work.executions import Steps, end
from oncekey.stores.work.promises import settle
from oncekey.stores.work.rows import promise_of

# Time settles these; the others are late.
_TIMED = (PromiseKind.SLEEP, PromiseKind.RETRY)
_UNFINISHED = (Status.READY, Status.RUNNING, Status.WAITING)


def due(request: Due, setting: Setting) -> Steps:
    woken: list[Woken] = []
    ended: list[int] = []
    alone: list[int] = []
    for row in (yield "due_promises", {"now": request.now, "limit": request.limit}):
        settled = yield from _ripen(promise_of(row), request)
        if settled is not None and settled.woken is not None:
            woken.append(settled.woken)
        elif settled is not None:
            alone.append(settled.promise.id)
    for number, keep in (yield "due_executions", {"now": request.now, "limit": request.limit}):
        locked = yield "try_lock_execution", {"id": number}
        # It may have ended in time after all, before it was locked.
        if locked and locked[0][0] in _UNFINISHED:
            ending = Ending(Status.FAILED, request.overdue, keep)
            woken.extend((yield from end(number, ending, request.now, from_outside=True)))
            ended.append(number)
    rows = yield "next_due", {"now": request.now}
    return Ripe(woken, ended, rows[0][0], tuple(alone))


def _ripen(promise: Promise, request: Due) -> Generator[Step, list[Row], Settled | None]:
    if promise.execution is not None:
        locked = yield "try_lock_execution", {"id": promise.execution}
        if not locked:
            return None
    in_time = promise.kind in _TIMED
    return (
        yield from settle(
            promise,
            PromiseState.RESOLVED if in_time else PromiseState.TIMED_OUT,
            (promise.body or b"null") if in_time else request.late,
            None,
            request.now,
        )
    )


def rewind(request: Rewind, setting: Setting) -> Steps:
    """Numbers are drawn by the clock: what one that was ahead has made has the highest of all."""
    latest = request.now + request.close
    values = {"now": request.now, "latest": latest, "first": first_number(latest)}
    promises = yield "rewind_promises", values
    executions = yield "rewind_executions", values
    return len(promises) + len(executions)


def forget(request: Forget, setting: Setting) -> Steps:
    """In small bites: nobody should wait for a long one."""
    values = {"now": request.now, "limit": request.limit}
    gone = [row[0] for row in (yield "expired_executions", values)]
    if gone:
        numbers = {"ids": json.dumps(gone)}
        for name in ("forget_journals", "forget_tokens_of", "forget_promises_of"):
            yield name, numbers
        yield "forget_executions", numbers
    count = len(gone)
    alone = [row[0] for row in (yield "forget_promises", values)]
    if alone:
        yield "forget_tokens", {"ids": json.dumps(alone)}
    count += len(alone)
    for name in ("forget_parked", "forget_events", "forget_promise_keys"):
        count += len((yield name, values))
    before = {"before": request.controls_before, "limit": request.limit}
    return count + len((yield "forget_controls", before))


def know(request: Know, setting: Setting) -> Steps:
    # In one order, so that processes which start together do not wait for each other in a circle.
    for sort, name in sorted(request.names):
        yield "know", {"sort": int(sort), "name": name, "now": request.now}
    return True
