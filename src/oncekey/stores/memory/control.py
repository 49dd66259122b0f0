"""The oracle of control: cancel, resume and fork, each once for its request key."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from oncekey.core.answers import Controlled, Woken
from oncekey.core.execution import PromiseKind, Status
from oncekey.core.ports import Gone
from oncekey.core.work import Control, Ending
from oncekey.stores.memory.kept import NOBODY, Kept, KeptControl


class _Unfit(Exception):
    """The action does not fit the state the execution is in."""


class MemoryControl:
    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._effects = {"cancel": self._cancel, "resume": self._resume, "fork": self._fork}

    def answers(self) -> dict[type, Callable[[Any], Any]]:
        return {Control: self._control}

    def _control(self, request: Control) -> Controlled | Gone:
        seen = self._kept.controls.get((request.tenant, request.request_key))
        if seen is not None:
            return _seen(request, seen)
        execution = self._kept.executions.get(request.execution)
        if execution is None or execution.tenant != request.tenant:
            return Controlled("unknown")
        if request.action == "fork" and request.fork in self._kept.executions:
            return Gone()
        try:
            number, ended = self._effects[request.action](request)
        except _Unfit as unfit:
            answer = json.dumps({"error": str(unfit)})
            self._keep(request, answer, succeeded=False)
            return Controlled("failed", answer)
        changed = self._kept.execution(number)
        assert changed is not None
        status = changed.status.name.lower()
        answer = json.dumps({"workflow_id": changed.public_id, "status": status})
        self._keep(request, answer, succeeded=True)
        return Controlled("done", answer, changed, ended)

    def _keep(self, request: Control, answer: str, *, succeeded: bool) -> None:
        self._kept.controls[request.tenant, request.request_key] = KeptControl(
            request.action, request.execution, request.parameters, succeeded, answer, request.now
        )

    def _cancel(self, request: Control) -> tuple[int, tuple[Woken, ...]]:
        """What is cancelled stays so; anything else that is over cannot be cancelled any more."""
        number = request.execution
        execution = self._kept.executions[number]
        if execution.status is Status.CANCELLED:
            return number, ()
        if execution.status.is_over:
            status = execution.status.name.lower()
            raise _Unfit(f"it is {status} already; what is over cannot be cancelled")
        ending = Ending(Status.CANCELLED, request.failure, execution.keep)
        return number, self._kept.end(number, ending, request.now, from_outside=True)

    def _resume(self, request: Control) -> tuple[int, tuple[Woken, ...]]:
        """It goes on with every attempt ahead of it again."""
        number = request.execution
        execution = self._kept.executions[number]
        if execution.status is not Status.PAUSED:
            status = execution.status.name.lower()
            raise _Unfit(f"it is {status}; only what is paused can be resumed")
        for promise in self._kept.promises_of(number):
            if promise.kind is PromiseKind.RETRY:
                del self._kept.promises[promise.id]
        ready = execution._replace(status=Status.READY, owner=NOBODY, result=None)
        self._kept.executions[number] = ready
        return number, ()

    def _fork(self, request: Control) -> tuple[int, tuple[Woken, ...]]:
        """A new execution with the journal up to the step, in the order in which steps ended."""
        source = self._kept.executions[request.execution]
        entries = self._kept.journal(source.id)
        if not 1 <= request.from_step <= len(entries) + 1:
            raise _Unfit(f"from_step must be 1 to {len(entries) + 1}, as in its journal")
        allowed = None if source.due_at is None else source.due_at - source.created_at
        self._kept.executions[request.fork] = source._replace(
            id=request.fork,
            status=Status.READY,
            owner=NOBODY,
            fence=1,
            created_at=request.now,
            wakes=0,
            key=None,
            due_at=None if allowed is None else request.now + allowed,
            completed_at=None,
            expires_at=None,
            result=None,
            forked_from=source.id,
            forked_at=request.from_step,
            origin=source.origin or source.id,
        )
        self._kept.append(request.fork, tuple(entries[: request.from_step - 1]))
        return request.fork, ()


def _seen(request: Control, seen: KeptControl) -> Controlled:
    asked = (request.action, request.execution, request.parameters)
    if (seen.action, seen.execution, seen.parameters) != asked:
        return Controlled("other")
    return Controlled("replayed" if seen.succeeded else "failed-before", seen.answer)
