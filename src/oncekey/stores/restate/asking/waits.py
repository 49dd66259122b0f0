"""The room of what executions wait for: promises they make, children they start, tokens."""

from __future__ import annotations

from typing import Any

from oncekey.core.answers import Advanced, Awaited, Existing, KeyTaken, Lost, Spawned, Started
from oncekey.core.execution import Execution, Promise, PromiseKind, PromiseState, Status
from oncekey.core.ports import Gone
from oncekey.core.work import AddToken, Advance, Await, Spawn, Start
from oncekey.stores.restate import topic
from oncekey.stores.restate.asked import Position, Registered, Told
from oncekey.stores.restate.asking.executions import Executions
from oncekey.stores.restate.asking.promises import Promises
from oncekey.stores.restate.claims import Room
from oncekey.stores.restate.link import Link
from oncekey.stores.restate.work.calls import wall_clock
from oncekey.stores.restate.work.following import child_of, nonce_of


class Waits:
    def __init__(self, line: Link, executions: Executions, promises: Promises) -> None:
        self._line = line
        self._executions = executions
        self._promises = promises
        self._ask = executions.ask
        self._ask_for_run = executions.ask_for_run

    def answers(self) -> Room:
        return {Await: self._await, AddToken: self._add_token, Spawn: self._spawn}

    # -- promises ------------------------------------------------------------------------

    async def _await(self, request: Await) -> Awaited | KeyTaken | Lost | Gone:
        start = request.start
        if start is not None and start.insert is not None:
            answer = await self._call_by_key(request, start)
        else:
            answer = await self._wait(request)
        if request.token is not None and isinstance(answer, Awaited):
            await self._promises.put_token(request.token, request.advance.id, answer.promise.id)
        return answer

    async def _wait(self, request: Await) -> Awaited | KeyTaken | Lost | Gone:
        """Make the promise, and have it known wherever it is to be found."""
        asked = [request, self._line.owner, wall_clock()]
        answer, registers, makes, forked_from = await self._ask_for_run(
            request.advance, "wait", asked
        )
        if makes and not await self._is_made(request, answer.promise.id):
            return Gone()
        if isinstance(answer, KeyTaken) and request.insert is not None:
            # Its name is taken. When its key is as well, that is what it is told.
            return await self._promises.keeper(request.insert, forked_from) or answer
        if not registers:
            made: Awaited | KeyTaken | Lost | Gone = answer
            return made
        promise: Promise = answer.promise
        told: KeyTaken | Told | Gone | None = None
        if request.insert is not None:
            told = await self._promises.claim(promise, request.insert, forked_from)
        elif promise.kind is PromiseKind.EVENT:
            place = topic.topic_id(promise.tenant, promise.topic or "")
            await self._line.call(topic.SERVICE, place, "add_wait", promise)
        elif promise.target is not None:
            told = await self._called(promise, request.advance.now)
        if isinstance(told, KeyTaken | Gone):
            return await self._refused(request.advance, promise, told)
        return await self._registered(request.advance, promise, told)

    async def _registered(
        self, advance: Advance, promise: Promise, told: Told | None
    ) -> Awaited | Lost | Gone:
        asked = Registered(
            advance.fence, promise.id, advance.now, self._line.owner, advance.waits, told
        )
        answer: Awaited | Lost | Gone = await self._ask_for_run(
            advance._replace(entries=()), "registered", asked
        )
        return answer

    async def _refused(
        self, advance: Advance, promise: Promise, refused: KeyTaken | Gone
    ) -> Awaited | KeyTaken | Lost | Gone:
        asked = [advance.fence, promise.id, self._line.owner]
        answer: Awaited | Lost | None = await self._ask(advance.id, "refuse", asked)
        return refused if answer is None else answer

    # -- calls ---------------------------------------------------------------------------

    async def _called(self, promise: Promise, now: int) -> Told | Gone | None:
        """The child knows who waits for its end; it may have come to it already."""
        assert promise.target is not None
        asked = [promise.execution, promise.id]
        child: Execution | None = await self._ask(promise.target, "call", asked)
        if child is None:
            return Gone()
        if not child.status.is_over:
            return None
        succeeded = child.status is Status.SUCCEEDED
        state = PromiseState.RESOLVED if succeeded else PromiseState.REJECTED
        return Told(promise.id, state, child.result or b"null", child.public_id, now)

    async def _call_by_key(self, request: Await, start: Start) -> Awaited | KeyTaken | Lost | Gone:
        """The child is started first: whoever goes on after this process finds it by its key."""
        position = await self._hold(request.advance, request.promise.seq)
        if isinstance(position, Lost):
            return position
        known = position.promise
        if known is not None and PromiseKind.RETRY not in {known.kind, request.promise.kind}:
            is_own = known.target == start.execution.id
            child = None if is_own else await self._holder_of(start, request.advance.now)
            started = known.target if is_own else None
        else:
            answer = await self._executions.start(start)
            if isinstance(answer, Gone):
                return answer
            child = None if isinstance(answer, Started) else answer
            if child is not None and not _fits(child, start):
                return Awaited(request.promise, child=child)
            started = start.execution.id if child is None else None
            target = started if child is None else child.record.id
            request = request._replace(promise=request.promise._replace(target=target))
        made = await self._wait(request._replace(start=None))
        return made._replace(child=child, started=started) if isinstance(made, Awaited) else made

    async def _hold(self, advance: Advance, seq: int | None) -> Position | Lost:
        asked = [advance, seq, self._line.owner]
        position: Position | Lost = await self._ask_for_run(advance, "hold", asked)
        return position

    async def _holder_of(self, start: Start, now: int) -> Existing | None:
        """What has the key of a start that was asked for before."""
        if start.insert is None:
            return None
        record = await self._executions.key(start.insert.digest, "peek", None)
        return None if record is None else await self._executions.existing(record, now)

    async def _is_made(self, request: Await | Spawn, promise: int = 0, *, seq: int = 0) -> bool:
        """Whether the child of a parent is there; not when another execution has its number."""
        start, parent = request.start, request.advance.id
        assert start is not None
        owner = self._line.owner if start.execution.status is Status.RUNNING else 0
        execution = start.execution._replace(owner=owner)
        creation = child_of(execution, parent, promise, seq=seq)
        number = start.execution.id
        made: Any = await self._ask(number, "create", creation, nonce=nonce_of(creation))
        if not isinstance(made, Gone):
            return True
        await self._ask(parent, "disown", [creation.promise, creation.seq])
        return False

    # -- what is only started ------------------------------------------------------------

    async def _spawn(self, request: Spawn) -> Spawned | Lost | Gone:
        advance, start, entry = request
        if start.insert is not None:
            return await self._spawn_by_key(request)
        answer: Spawned | Lost
        asked = [request, self._line.owner]
        answer, makes = await self._ask_for_run(advance, "spawn", asked)
        if makes and not await self._is_made(request, seq=entry.seq):
            return Gone()
        return answer

    async def _spawn_by_key(self, request: Spawn) -> Spawned | Lost | Gone:
        advance, start, entry = request
        position = await self._hold(advance, entry.seq)
        if isinstance(position, Lost):
            return position
        if position.entry is not None:
            entry = entry._replace(body=position.entry.body)
            if entry.body == f'"{start.execution.public_id}"'.encode():
                return Spawned(entry, is_new=True)
            return Spawned(entry, await self._holder_of(start, advance.now))
        answer = await self._executions.start(start)
        if isinstance(answer, Gone):
            return answer
        existing = answer if isinstance(answer, Existing) else None
        if existing is not None and not _fits(existing, start):
            return Spawned(entry, existing, is_journaled=False)
        execution = start.execution if existing is None else existing.execution
        assert execution is not None
        entry = entry._replace(body=f'"{execution.public_id}"'.encode())
        told = await self._executions.advance(advance._replace(entries=(entry,), waits=None))
        if isinstance(told, Lost):
            return told
        return Spawned(entry, existing, is_new=existing is None)

    async def _add_token(self, request: AddToken) -> Advanced | Lost:
        answer: Advanced | Lost
        answer, promise = await self._ask(request.id, "add_token", [request, self._line.owner])
        if promise is not None and isinstance(answer, Advanced):
            await self._promises.put_token(request.token, request.id, promise)
        return answer


def _fits(existing: Existing, start: Start) -> bool:
    """Whether the execution that has the key is the one that was asked for."""
    asked = start.insert.operation.fingerprint if start.insert is not None else None
    return existing.execution is not None and existing.record.fingerprint == asked
