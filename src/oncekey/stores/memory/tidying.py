"""The oracle of what time does to durable work: it settles what is due, and forgets."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

from oncekey.core.answers import Ripe, Woken
from oncekey.core.execution import Promise, PromiseKind, PromiseState, Status
from oncekey.core.work import Due, Ending, Forget, Know, Rewind
from oncekey.stores.memory.kept import Kept

K = TypeVar("K")

# Time settles these; the others are late.
_TIMED = {PromiseKind.SLEEP, PromiseKind.RETRY}
_UNFINISHED = {Status.READY, Status.RUNNING, Status.WAITING}


class MemoryTidying:
    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def answers(self) -> dict[type, Callable[[Any], Any]]:
        return {
            Due: self._due,
            Rewind: self._rewind,
            Forget: self._forget,
            Know: self._know,
        }

    # -- what is due ---------------------------------------------------------------------

    def _due(self, request: Due) -> Ripe:
        now, late, overdue, limit = request
        woken: list[Woken] = []
        alone: list[int] = []
        for due_at, number in self._due_promises()[:limit]:
            if due_at <= now:
                told = self._ripen(self._kept.promises[number], now, late)
                woken += told
                alone += () if told else (number,)
        ended: list[int] = []
        for due_at, number in self._due_executions()[:limit]:
            if due_at <= now:
                keep = self._kept.executions[number].keep
                ending = Ending(Status.FAILED, overdue, keep)
                woken += self._kept.end(number, ending, now, from_outside=True)
                ended.append(number)
        later = self._due_promises() + self._due_executions()
        return Ripe(woken, ended, min((due_at for due_at, _ in later), default=None), tuple(alone))

    def _ripen(self, promise: Promise, now: int, late: bytes) -> tuple[Woken, ...]:
        if promise.kind in _TIMED:
            state, body = PromiseState.RESOLVED, promise.body or b"null"
        else:
            state, body = PromiseState.TIMED_OUT, late
        settled = self._kept.settle(promise.id, state, body, None, now)
        return () if settled is None or settled.woken is None else (settled.woken,)

    def _due_promises(self) -> list[tuple[int, int]]:
        return sorted(
            (promise.due_at, number)
            for number, promise in self._kept.promises.items()
            if promise.state is PromiseState.PENDING and promise.due_at is not None
        )

    def _due_executions(self) -> list[tuple[int, int]]:
        return sorted(
            (execution.due_at, number)
            for number, execution in self._kept.executions.items()
            if execution.status in _UNFINISHED and execution.due_at is not None
        )

    def _rewind(self, request: Rewind) -> int:
        now, latest, count = request.now, request.now + request.close, 0
        for due, kept in (
            (self._due_promises(), self._kept.promises),
            (self._due_executions(), self._kept.executions),
        ):
            for due_at, number in due:
                made: Any = kept[number]
                if made.created_at > latest:
                    left = now + due_at - made.created_at
                    kept[number] = made._replace(due_at=left, created_at=now)
                    count += 1
        return count

    # -- what is past its time -----------------------------------------------------------

    def _forget(self, request: Forget) -> int:
        """At most `limit` of each kind."""
        kept, (now, controls_before, limit) = self._kept, request
        over = {n: e.expires_at for n, e in kept.executions.items() if e.expires_at is not None}
        gone = _past(over, now, limit)
        for number in gone:
            del kept.executions[number]
            kept.journals.pop(number, None)
            self._forget_promises([promise.id for promise in kept.promises_of(number)])
        alone = _past(kept.promises_kept_until, now, limit)
        self._forget_promises(alone)
        parked = _past({d: each.expires_at for d, each in kept.parked.items()}, now, limit)
        _drop(kept.parked, parked)
        events = _past({n: event.expires_at for n, event in kept.events.items()}, now, limit)
        _drop(kept.events, events)
        _drop(kept.matches, events)
        keys = kept.keys.forget_promises(now, limit)
        ages = {each: control.updated_at for each, control in kept.controls.items()}
        controls = _past(ages, controls_before, limit)
        _drop(kept.controls, controls)
        return len(gone) + len(alone) + len(parked) + len(events) + keys + len(controls)

    def _forget_promises(self, numbers: list[int]) -> None:
        tokens = [digest for digest, number in self._kept.tokens.items() if number in numbers]
        _drop(self._kept.tokens, tokens)
        _drop(self._kept.promises, numbers)
        _drop(self._kept.promises_kept_until, numbers)

    def _know(self, request: Know) -> bool:
        for place in request.names:
            self._kept.names[place] = request.now
        return True


def _past(ends: dict[K, int], now: int, limit: int) -> list[K]:
    """The first to end first."""
    past = [(at, which) for which, at in ends.items() if at <= now]
    return [which for _, which in sorted(past, key=lambda each: each[0])[:limit]]


def _drop(table: MutableMapping[K, Any], which: list[K]) -> None:
    for each in which:
        table.pop(each, None)
