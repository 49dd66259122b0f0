"""The oracle of what an execution waits for: promises it makes, and children it starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oncekey.core.answers import (
    Advanced,
    Awaited,
    Existing,
    KeyTaken,
    Lost,
    Spawned,
    Started,
)
from oncekey.core.execution import Promise, PromiseKind, PromiseState
from oncekey.core.ports import Gone
from oncekey.core.work import AddToken, Await, Spawn, Start
from oncekey.stores.memory.executions import MemoryExecutions
from oncekey.stores.memory.kept import Kept, entry_of
from oncekey.stores.memory.promises import MemoryPromises


class MemoryAwaiting:
    def __init__(self, kept: Kept, executions: MemoryExecutions, promises: MemoryPromises) -> None:
        self._kept = kept
        self._executions = executions
        self._promises = promises

    def answers(self) -> dict[type, Callable[[Any], Any]]:
        return {Await: self._await, AddToken: self._add_token, Spawn: self._spawn}

    def _await(self, request: Await) -> Awaited | KeyTaken | Lost | Gone:
        advance, promise = request.advance, request.promise
        if not self._kept.hold(advance.id, advance.fence):
            return Lost()
        self._kept.append(advance.id, advance.entries)
        known = self._kept.promise_at(advance.id, promise.seq)
        if known is not None and PromiseKind.RETRY not in {known.kind, promise.kind}:
            return self._again(request, known)
        if known is not None:
            del self._kept.promises[known.id]
        forked_from = self._kept.executions[advance.id].forked_from
        taken = self._promises.register(promise, request.insert, forked_from=forked_from)
        if taken is not None:
            return taken
        answer = self._make(request)
        if isinstance(answer, KeyTaken | Gone):
            self._promises.unregister(request.insert)
        return answer

    def _again(self, request: Await, promise: Promise) -> Awaited:
        """The position has its promise: its commit was not heard of, or it is replayed."""
        advance = request.advance
        if request.token is not None:
            self._kept.tokens.setdefault(request.token, promise.id)
        child, started = self._child_of(promise, request.start)
        if promise.state is not PromiseState.PENDING:
            return Awaited(promise, entry_of(promise), False, child, started)
        waits = self._kept.lie_down(advance.id, advance.waits)
        return Awaited(promise, None, waits, child, started)

    def _child_of(
        self, promise: Promise, start: Start | None
    ) -> tuple[Existing | None, int | None]:
        """What a CALL that was made before waits for: another's execution, or its own child."""
        if start is None:
            return None, None
        if promise.target == start.execution.id:
            return None, promise.target
        return self._holder_of(start), None

    def _holder_of(self, start: Start) -> Existing | None:
        """What has the key of a start that was asked for before."""
        record = None if start.insert is None else self._kept.keys.at(start.insert.digest)
        return None if record is None else self._executions.existing(record)

    def _make(self, request: Await) -> Awaited | KeyTaken | Gone:
        promise, start = request.promise, request.start
        if promise.kind is PromiseKind.PROMISE:
            named = self._kept.promise_named(request.advance.id, promise.name)
            if named is not None:
                return KeyTaken(named)
        if promise.id in self._kept.promises:
            return Gone()
        if start is None:
            return self._made(request, promise)
        answer = self._executions.start(start)
        if isinstance(answer, Gone):
            return answer
        if isinstance(answer, Started):
            number = start.execution.id
            return self._made(request, promise._replace(target=number), started=number)
        if not _fits(answer, start):
            return Awaited(promise, child=answer)
        return self._made(request, promise._replace(target=answer.record.id), child=answer)

    def _made(
        self,
        request: Await,
        promise: Promise,
        *,
        child: Existing | None = None,
        started: int | None = None,
    ) -> Awaited:
        advance = request.advance
        promise = self._promises.add(promise, request.insert, request.token)
        settled = self._promises.deliver_parked(promise, request.insert)
        if settled is None and child is not None:
            settled = self._kept.tell(promise.id, child.record.id, advance.now)
        if settled is not None:
            return Awaited(settled.promise, entry_of(settled.promise), False, child, started)
        waits = self._kept.lie_down(advance.id, advance.waits)
        return Awaited(promise, None, waits, child, started)

    def _add_token(self, request: AddToken) -> Advanced | Lost:
        if not self._kept.hold(request.id, request.fence):
            return Lost()
        promise = self._kept.promise_at(request.id, request.seq)
        if promise is not None:
            self._kept.tokens.setdefault(request.token, promise.id)
        return Advanced()

    def _spawn(self, request: Spawn) -> Spawned | Lost | Gone:
        advance, start, entry = request
        if not self._kept.hold(advance.id, advance.fence):
            return Lost()
        self._kept.append(advance.id, advance.entries)
        done = self._kept.journals.get(advance.id, {}).get(entry.seq)
        if done is not None:
            return self._spawned_before(request, done.body)
        answer = self._executions.start(start)
        if isinstance(answer, Gone):
            return answer
        existing = answer if isinstance(answer, Existing) else None
        if existing is not None and not _fits(existing, start):
            return Spawned(entry, existing, is_journaled=False)
        execution = start.execution if existing is None else existing.execution
        assert execution is not None
        entry = entry._replace(body=f'"{execution.public_id}"'.encode())
        self._kept.append(advance.id, (entry,))
        return Spawned(entry, existing, is_new=existing is None)

    def _spawned_before(self, request: Spawn, body: bytes) -> Spawned:
        _, start, entry = request
        entry = entry._replace(body=body)
        if body == f'"{start.execution.public_id}"'.encode():
            return Spawned(entry, is_new=True)
        return Spawned(entry, self._holder_of(start))


def _fits(existing: Existing, start: Start) -> bool:
    """Whether the execution that has the key is the one that was asked for."""
    asked = start.insert.operation.fingerprint if start.insert is not None else None
    return existing.execution is not None and existing.record.fingerprint == asked
