"""The oracle of counting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from oncekey.core.census import Census, Counted
from oncekey.core.execution import PromiseKind, PromiseState, Sort, Status
from oncekey.core.work import ENGINE
from oncekey.stores.memory.claims import Claims
from oncekey.stores.memory.kept import Kept


class MemoryCensus:
    def __init__(self, claims: Claims, kept: Kept) -> None:
        self._claims = claims
        self._kept = kept

    def answers(self) -> dict[type, Callable[[Any], Any]]:
        return {Census: self._count}

    def _count(self, _: Census) -> Counted:
        claims = [
            record.created_at
            for record in self._claims.all()
            if record.outcome is None and record.owner != ENGINE
        ]
        executions = self._kept.executions.values()
        promises = [
            each for each in self._kept.promises.values() if each.kind is PromiseKind.PROMISE
        ]
        statuses = Counter((each.sort, each.status) for each in executions)
        states = Counter(each.state for each in promises)
        waiting = [each.created_at for each in executions if each.status is Status.WAITING]
        pending = [each.created_at for each in promises if each.state is PromiseState.PENDING]
        return Counted(
            len(claims),
            min(claims, default=None),
            {status: statuses[Sort.WORKFLOW, status] for status in Status},
            {status: statuses[Sort.TASK, status] for status in Status},
            {state: states[state] for state in PromiseState},
            min(waiting, default=None),
            min(pending, default=None),
        )
