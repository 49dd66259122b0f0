"""The oracle of what is read of durable work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oncekey.core.execution import Execution, Promise, PromiseKind, Sort
from oncekey.core.looking import Looked
from oncekey.core.work import (
    FindExecution,
    FindPromise,
    Known,
    ListExecutions,
    ListPromises,
    Lives,
    ReadJournal,
)
from oncekey.stores.memory.kept import Kept
from oncekey.stores.memory.looking import looked


class MemoryReads:
    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def answers(self) -> dict[type, Callable[[Any], Any]]:
        return {
            FindExecution: self._find_execution,
            ReadJournal: lambda read: self._kept.journal(read.id),
            FindPromise: lambda find: self._kept.find(find.target),
            ListExecutions: self._list_executions,
            ListPromises: self._list_promises,
            Known: self._known,
            # What is kept in memory is run by nobody else.
            Lives: lambda _: True,
        }

    def _find_execution(self, request: FindExecution) -> Execution | None:
        found = self._kept.execution(request.id)
        return found if found and request.tenant in {None, found.tenant} else None

    def _list_executions(self, request: ListExecutions) -> Looked[Execution]:
        found = [self._kept.execution(n) for n in sorted(self._kept.executions, reverse=True)]

        def fits(execution: Execution) -> bool:
            return (
                request.tenant in {None, execution.tenant}
                and request.status in {None, execution.status}
                and request.name in {None, execution.name}
                and request.sort in {None, execution.sort}
            )

        return looked([each for each in found if each is not None], request, fits)

    def _list_promises(self, request: ListPromises) -> Looked[Promise]:
        """What only time or code settles is left out, unless asked for by kind or by execution."""
        kind = request.kind
        if kind is None and request.execution is None:
            kind = PromiseKind.PROMISE
        found = [self._kept.promise(n) for n in sorted(self._kept.promises, reverse=True)]

        def fits(promise: Promise) -> bool:
            return (
                request.tenant in {None, promise.tenant}
                and request.state in {None, promise.state}
                and kind in {None, promise.kind}
                and request.execution in {None, promise.execution}
                and request.key in {None, promise.key}
            )

        return looked([each for each in found if each is not None], request, fits)

    def _known(self, request: Known) -> list[tuple[Sort, str]]:
        return [(Sort(sort), name) for sort, name in sorted(self._kept.names)]
