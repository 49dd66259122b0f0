"""Counting as steps of named SQL: in slices, so that nobody who reads beside it waits for long."""

from __future__ import annotations

from collections.abc import Generator

from oncekey.core.census import Census, Counted
from oncekey.core.execution import PromiseKind, PromiseState, Sort, Status
from oncekey.stores.requests import Row, Setting, Step
from oncekey.stores.work.executions import Steps

_SLICE = 5_000

Group = tuple[int, ...]
Tally = dict[Group, tuple[int, int]]
"""How many there are of a group, and when the oldest was made."""


def count(request: Census, setting: Setting) -> Steps:
    claims = yield from _sliced("count_claims")
    abandoned = (yield "count_abandoned", {})[0]
    executions = yield from _sliced("count_executions")
    promises = yield from _sliced("count_promises")
    waiting = [at for (_, status), (_, at) in executions.items() if status == Status.WAITING]
    open_, oldest = claims.get((1,), (0, None))
    return Counted(
        open_ + abandoned[0],
        min((at for at in (oldest, abandoned[1]) if at is not None), default=None),
        {status: _number(executions, (Sort.WORKFLOW, status)) for status in Status},
        {status: _number(executions, (Sort.TASK, status)) for status in Status},
        {state: _number(promises, (PromiseKind.PROMISE, state)) for state in PromiseState},
        min(waiting, default=None),
        promises.get((PromiseKind.PROMISE, PromiseState.PENDING), (0, None))[1],
    )


def _sliced(name: str) -> Generator[Step, list[Row], Tally]:
    """Everything, oldest first. A row tells of a group of a slice, and of its last number."""
    tally: Tally = {}
    after = -1
    while True:
        rows = yield name, {"after": after, "limit": _SLICE}
        for *group, number, oldest, last in rows:
            before, since = tally.get(tuple(group), (0, oldest))
            tally[tuple(group)] = (before + number, min(since, oldest))
            after = max(after, last)
        if sum(row[-3] for row in rows) < _SLICE:
            return tally


def _number(tally: Tally, group: Group) -> int:
    return tally.get(group, (0, 0))[0]
