"""The oracle of executions: started, advanced, ended, handed back and picked up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oncekey.core.answers import Advanced, Existing, Lost, Owned, Picked, Started
from oncekey.core.execution import Execution, PromiseKind, PromiseState, Sort, Status
from oncekey.core.model import Link, Record
from oncekey.core.ports import Gone
from oncekey.core.work import Advance, HandBack, Load, Mine, PickUp, Start, Withdraw
from oncekey.stores.memory.kept import NOBODY, Kept


class MemoryExecutions:
    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def answers(self) -> dict[type, Callable[[Any], Any]]:
        return {
            Start: self.start,
            Withdraw: self.withdraw,
            Advance: self._advance,
            PickUp: self._pick_up,
            HandBack: self._hand_back,
            Mine: self._mine,
            Load: self._load,
        }

    # -- beginning -----------------------------------------------------------------------

    def start(self, request: Start) -> Started | Existing | Gone:
        execution, insert = request
        if insert is not None:
            taken = self._kept.keys.claim(insert, _link_of(execution))
            if isinstance(taken, Gone):
                return taken
            if taken is not None:
                return self.existing(taken)
        owner = self._kept.owner if execution.status is Status.RUNNING else NOBODY
        if execution.id in self._kept.executions:
            return self._made_before(request, owner)
        key = None if insert is None else insert.operation.ref.key
        self._kept.executions[execution.id] = execution._replace(owner=owner, wakes=0, key=key)
        return Started(owner)

    def _made_before(self, request: Start, owner: int) -> Started | Existing | Gone:
        """The number is in use: by this very start, whose commit nobody heard of, or by another."""
        execution, insert = request
        made = self._kept.execution(execution.id)
        assert made is not None
        if is_same_start(made, execution, owner):
            return Started(owner)
        if insert is not None and made.key == insert.operation.ref.key:
            record = self._kept.keys.at(insert.digest)
            assert record is not None
            return Existing(record, made)
        if insert is not None:
            self._kept.keys.forget(insert.id)
        return Gone()

    def existing(self, record: Record) -> Existing:
        """What a key that is taken stands for."""
        return Existing(record, self._kept.execution(record.id))

    def withdraw(self, request: Withdraw) -> bool:
        """Only a start that nobody has done anything with."""
        kept, number = self._kept, request.id
        execution = kept.executions.get(number)
        if execution is None or execution.fence != 1:
            return False
        untouched = execution.status in {Status.READY, Status.RUNNING}
        if not untouched or kept.journals.get(number) or kept.promises_of(number):
            return False
        del kept.executions[number]
        if execution.key is not None:
            kept.keys.forget(number)
        return True

    # -- running -------------------------------------------------------------------------

    def _advance(self, request: Advance) -> Advanced | Lost:
        number, fence, now, entries, ending, waits = request
        kept = self._kept
        if not kept.hold(number, fence):
            over = kept.executions.get(number)
            # An ending of this very fence is the run's own: a commit nobody heard of.
            ours = over and ending and (over.status, over.fence) == (ending.status, fence)
            return Advanced() if ours else Lost()
        kept.append(number, entries)
        if ending is not None:
            return Advanced(ended=kept.end(number, ending, now))
        if waits is not None and not kept.lie_down(number, waits):
            return Advanced(woken=True)
        return Advanced()

    def _hand_back(self, request: HandBack) -> int:
        kept, count = self._kept, 0
        for number, fence in request.held:
            execution = kept.executions.get(number)
            if execution and (execution.status, execution.fence) == (Status.RUNNING, fence):
                back = execution._replace(status=Status.READY, owner=NOBODY)
                kept.executions[number] = back
                count += 1
        return count

    def _mine(self, request: Mine) -> list[Owned]:
        return [
            Owned(number, execution.fence, execution.wakes, execution.sort, execution.name)
            for number, execution in sorted(self._kept.executions.items())
            if execution.status is Status.RUNNING
        ]

    def _pick_up(self, request: PickUp) -> list[Picked]:
        """Oldest first. What is RUNNING is this process's own: there is no other that could die."""
        kept = self._kept
        ready = [
            execution
            for number, execution in sorted(kept.executions.items())
            if execution.status is Status.READY
            and (execution.sort, execution.name) in request.names
            and request.only in {None, number}
        ][: request.limit]
        for execution in ready:
            kept.take(execution)
        return [self._picked(execution.id) for execution in ready]

    def _load(self, request: Load) -> Picked | Lost:
        found = self._kept.executions.get(request.id)
        if found is None or (found.status, found.fence) != (Status.RUNNING, request.fence):
            return Lost()
        return self._picked(request.id)

    def _picked(self, number: int) -> Picked:
        """With everything a replay needs."""
        execution = self._kept.execution(number)
        assert execution is not None
        promises = [
            promise
            for promise in self._kept.promises_of(number)
            if promise.state is PromiseState.PENDING or promise.kind is PromiseKind.RETRY
        ]
        return Picked(execution, self._kept.journal(number), promises)


def is_same_start(made: Execution, asked: Execution, owner: int) -> bool:
    """Whether what is there is what was asked for, and is still the asker's to run."""
    same = (made.tenant, made.sort, made.name, made.input, made.created_at) == (
        asked.tenant,
        asked.sort,
        asked.name,
        asked.input,
        asked.created_at,
    )
    if asked.status is not Status.RUNNING:
        return same
    return same and (made.status, made.owner, made.fence) == (Status.RUNNING, owner, asked.fence)


def _link_of(execution: Execution) -> Link:
    kind = "task" if execution.sort is Sort.TASK else "workflow"
    return Link(kind, execution.public_id)  # type: ignore[arg-type]
