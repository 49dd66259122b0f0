"""What durable work keeps, as dictionaries, and the few verbs everything else is made of.

Whatever is waited for is a promise. To settle one is to journal it and to wake who waits; to end an
execution is to give up what it waits for, to settle its key, and to settle what waits for it.
"""

from __future__ import annotations

from typing import NamedTuple

from oncekey.core.answers import Settled, Woken
from oncekey.core.execution import (
    Entry,
    Execution,
    Promise,
    PromiseKind,
    PromiseState,
    Status,
    Step,
    execution_id_of,
    in_order,
)
from oncekey.core.model import Kind, Outcome
from oncekey.core.work import Ending, Event, Target
from oncekey.stores.memory.claims import Claims
from oncekey.stores.memory.keys import Keys

NOBODY = 0
_WEEK = 7 * 24 * 3600 * 1000
_STEPS = {
    PromiseKind.PROMISE: Step.PROMISE,
    PromiseKind.SLEEP: Step.SLEEP,
    PromiseKind.EVENT: Step.EVENT,
    PromiseKind.CALL: Step.CALL,
}


class ParkedResolution(NamedTuple):
    state: PromiseState
    body: bytes
    settled_by: str | None
    expires_at: int
    request: int | None
    """The claim of the request's own key."""


class KeptControl(NamedTuple):
    action: str
    execution: int
    parameters: str
    succeeded: bool
    answer: str
    updated_at: int


class Kept:
    """`owner` is this process: the only one there is."""

    def __init__(self, claims: Claims, owner: int) -> None:
        self.owner = owner
        self.keys = Keys(claims)
        self.executions: dict[int, Execution] = {}
        """By number. A key here, or in a promise, only says that it was made with one."""
        self.journals: dict[int, dict[int, Entry]] = {}
        self.promises: dict[int, Promise] = {}
        self.promises_kept_until: dict[int, int] = {}
        """Those no execution waits for."""
        self.tokens: dict[bytes, int] = {}
        self.parked: dict[bytes, ParkedResolution] = {}
        self.events: dict[int, Event] = {}
        self.matches: dict[int, int] = {}
        """By event: how many waits it has settled."""
        self.controls: dict[tuple[str, str], KeptControl] = {}
        self.names: dict[tuple[int, str], int] = {}

    # -- reading -------------------------------------------------------------------------

    def execution(self, number: int) -> Execution | None:
        found = self.executions.get(number)
        if found is None or found.key is None:
            return found
        record = self.keys.of(number)
        return found._replace(key=None if record is None else record.ref.key)

    def promise(self, number: int) -> Promise | None:
        found = self.promises.get(number)
        if found is None or found.key is None:
            return found
        record = self.keys.of(number)
        if record is None:
            return found._replace(key=None, key_expires_at=None)
        return found._replace(key=record.ref.key, key_expires_at=record.expires_at)

    def journal(self, number: int) -> list[Entry]:
        """In the order in which the steps ended."""
        return in_order(self.journals.get(number, {}).values())

    def promises_of(self, execution: int) -> list[Promise]:
        numbers = sorted(n for n, each in self.promises.items() if each.execution == execution)
        return [promise for n in numbers if (promise := self.promise(n)) is not None]

    def promise_at(self, execution: int, seq: int | None) -> Promise | None:
        return next((each for each in self.promises_of(execution) if each.seq == seq), None)

    def promise_named(self, execution: int | None, name: str | None) -> Promise | None:
        """Only what somebody outside can settle has a name of its own."""
        if execution is None:
            return None
        found = self.promises_of(execution)
        named = (each for each in found if each.kind is PromiseKind.PROMISE and each.name == name)
        return next(named, None)

    def find(self, target: Target) -> Promise | None:
        """The promise a target means, if it is the tenant's."""
        if target.digest is not None:
            record = self.keys.at(target.digest)
            found = None if record is None else self.promise(record.id)
        elif target.token is not None:
            found = self.promise(self.tokens.get(target.token, 0))
        elif target.id is not None:
            found = self.promise(target.id)
        else:
            found = self.promise_named(target.execution, target.name)
        if found is None or found.tenant != target.tenant:
            return None
        return found if target.name in {None, found.name} else None

    # -- executions ----------------------------------------------------------------------

    def hold(self, number: int, fence: int) -> bool:
        """Whether the run with this fence still has the execution. One that lay down gets up."""
        execution = self.executions.get(number)
        if execution is None or execution.fence != fence:
            return False
        if execution.status is Status.WAITING:
            self._change(execution, status=Status.RUNNING, owner=self.owner)
            return True
        return execution.status is Status.RUNNING

    def append(self, number: int, entries: tuple[Entry, ...]) -> None:
        """A step ends once: what is in the journal stays as it is."""
        for entry in entries:
            self.journals.setdefault(number, {}).setdefault(entry.seq, entry)

    def lie_down(self, number: int, wakes: int | None) -> bool:
        """WAITING from now on, unless something was settled that the run has not seen."""
        execution = self.executions[number]
        if wakes is None or execution.wakes != wakes:
            return False
        self._change(execution, status=Status.WAITING, owner=NOBODY)
        return True

    def wake(self, number: int) -> bool:
        """Whether it is for any process to pick up now; one that runs is told by the count."""
        execution = self.executions[number]
        waited = execution.status is Status.WAITING
        status = Status.READY if waited else execution.status
        self._change(execution, status=status, wakes=execution.wakes + 1)
        return status is Status.READY

    def end(
        self, number: int, ending: Ending, now: int, *, from_outside: bool = False
    ) -> tuple[Woken, ...]:
        """An ending that is not the run's own takes the fence from it. PAUSED is no end."""
        status, result, keep, *_ = ending
        execution = self.executions[number]
        self._change(
            execution,
            status=status,
            result=result,
            owner=NOBODY,
            fence=execution.fence + from_outside,
            completed_at=now if status.is_over else None,
            expires_at=now + keep if status.is_over else None,
        )
        if not status.is_over:
            return ()
        for promise in self.promises_of(number):
            if promise.state is PromiseState.PENDING:
                cancelled = promise._replace(state=PromiseState.CANCELLED, settled_at=now)
                self.promises[promise.id] = cancelled
        if execution.key is not None:
            self._settle_key(execution, ending, now)
        return self._tell_callers(number, now)

    def _settle_key(self, execution: Execution, ending: Ending, now: int) -> None:
        if ending.status is Status.SUCCEEDED:
            outcome = Outcome(Kind.VALUE, body=ending.result)
        elif execution.frees_key:
            self.keys.forget(execution.id)
            return
        else:
            outcome = Outcome(Kind.ERROR, 500, body=ending.result)
        self.keys.settle(execution.id, outcome, now, now + ending.keep)

    def _tell_callers(self, target: int, now: int) -> tuple[Woken, ...]:
        calls = [promise for promise in self.promises.values() if promise.target == target]
        calls.sort(key=lambda call: (call.execution, call.seq))
        told = [self.tell(call.id, target, now) for call in calls]
        return tuple(each.woken for each in told if each is not None and each.woken is not None)

    def _change(self, execution: Execution, **fields: object) -> None:
        self.executions[execution.id] = execution._replace(**fields)  # type: ignore[arg-type]

    # -- promises ------------------------------------------------------------------------

    def tell(self, promise: int, target: int, now: int) -> Settled | None:
        """Settle a CALL with the end of what was called, if that is over."""
        child = self.executions[target]
        if not child.status.is_over:
            return None
        succeeded = child.status is Status.SUCCEEDED
        state = PromiseState.RESOLVED if succeeded else PromiseState.REJECTED
        told_by = execution_id_of(child.sort, child.id)
        return self.settle(promise, state, child.result or b"null", told_by, now)

    def take(self, execution: Execution) -> Execution:
        """It is this process's from now on."""
        taken = execution._replace(
            status=Status.RUNNING, owner=self.owner, fence=execution.fence + 1
        )
        self.executions[execution.id] = taken
        return taken

    def settle(
        self, number: int, state: PromiseState, body: bytes, settled_by: str | None, now: int
    ) -> Settled | None:
        """Settle a pending promise, journal it, wake who waits. None when it was settled before."""
        promise = self.promise(number)
        if promise is None or promise.state is not PromiseState.PENDING:
            return None
        promise = promise._replace(state=state, body=body, settled_by=settled_by, settled_at=now)
        self.promises[number] = promise
        if promise.execution is None:
            self.promises_kept_until[number] = now + _WEEK
            return Settled(promise, None)
        entry = None
        if promise.kind is not PromiseKind.RETRY:
            entry = entry_of(promise)
            self.append(promise.execution, (entry,))
        ready = self.wake(promise.execution)
        return Settled(promise, Woken(promise.execution, ready, entry, number))


def entry_of(promise: Promise) -> Entry:
    """What a settled promise is in the journal of the execution that waits for it."""
    assert promise.seq is not None
    assert promise.settled_at is not None
    return Entry(
        promise.seq,
        _STEPS[promise.kind],
        promise.name,
        promise.fingerprint,
        promise.state is not PromiseState.RESOLVED,
        promise.body or b"null",
        1,
        promise.created_at,
        promise.settled_at,
    )
