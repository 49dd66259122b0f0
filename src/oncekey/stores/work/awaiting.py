"""What an execution waits for, as steps of named SQL: promises it makes, and children it starts."""

from __future__ import annotations

from collections.abc import Generator

from oncekey.core.answers import Advanced, Awaited, Existing, KeyTaken, Lost, Spawned
from oncekey.core.execution import (
    Promise,
    PromiseKind,
    PromiseState,
    Sort,
    Status,
    execution_id_of,
)
from oncekey.core.ports import Gone
from oncekey.core.work import AddToken, Await, Spawn, Start, Withdraw
from oncekey.stores.requests import Row, Setting, Step
from oncekey.stores.work.claims import forget
from oncekey.stores.work.executions import (
    Steps,
    append,
    existing_at,
    hold,
    is_held,
    lie_down,
    start,
    withdraw,
)
from oncekey.stores.work.promises import deliver_parked, insert_promise, register, settle, with_key
from oncekey.stores.work.rows import entry_of_promise, promise_of


def wait_for(request: Await, setting: Setting) -> Steps:
    advance, promise = request.advance, request.promise
    if request.insert is not None:
        yield "lock_key", {"digest": request.insert.digest}
    if request.start is not None and request.start.insert is not None:
        yield from _lock_child(request.start.insert.digest)
    rows = yield from hold(advance, setting)
    if not is_held(rows, advance):
        return Lost()
    yield from append(advance.id, advance.entries)
    known = yield "find_promise_at", {"execution": advance.id, "seq": promise.seq}
    if known:
        before = promise_of(known[0])
        if PromiseKind.RETRY not in {before.kind, promise.kind}:
            return (yield from _again(request, before))
        # Whatever comes to the position replaces the wait for another attempt.
        yield "forget_promise", {"id": before.id}
    taken = yield from register(promise, request.insert, forked_from=rows[0][3])
    if taken is not None:
        return taken
    return (yield from _make(request, setting))


def _lock_child(digest: bytes) -> Generator[Step, list[Row], None]:
    """A child that is there already is locked before who calls it, as it is when it ends."""
    for row in (yield "find", {"digest": digest}):
        yield "lock_execution", {"id": row[0]}


def _again(request: Await, promise: Promise) -> Generator[Step, list[Row], Awaited]:
    """The position has its promise: the commit that made it was not heard of, or is replayed."""
    if request.token is not None:
        yield "add_token", {"digest": request.token, "promise": promise.id}
    child, started = None, None
    if request.start is not None and promise.target == request.start.execution.id:
        started = promise.target
    elif request.start is not None:
        child = yield from _holder_of(request.start)
    if promise.state is not PromiseState.PENDING:
        return Awaited(promise, entry_of_promise(promise), False, child, started)
    return Awaited(promise, None, (yield from _lie_down(request)), child, started)


def _holder_of(start: Start) -> Generator[Step, list[Row], Existing | None]:
    """What has the key of a start that was asked for before."""
    if start.insert is None:
        return None
    return (yield from existing_at(start.insert.digest))


def _make(request: Await, setting: Setting) -> Steps:
    promise, child, started = with_key(request.promise, request.insert), None, None
    if request.start is not None:
        answer = yield from start(request.start, setting)
        if isinstance(answer, Gone):
            return answer
        child = answer if isinstance(answer, Existing) else None
        started = None if child else request.start.execution.id
        if child is not None and not _is_same(child, request):
            return Awaited(promise, child=child)
        promise = promise._replace(target=child.record.id if child else started)
    if not (yield from insert_promise(promise, keyed=request.insert is not None)):
        return (yield from _undo(request, started, setting))
    if request.token is not None:
        yield "add_token", {"digest": request.token, "promise": promise.id}
    settled = yield from deliver_parked(promise, request.insert)
    if settled is None and promise.target is not None:
        settled = yield from _call(promise, child, request.advance.now)
    if settled is not None:
        return Awaited(settled.promise, entry_of_promise(settled.promise), False, child, started)
    return Awaited(promise, None, (yield from _lie_down(request)), child, started)


def _undo(request: Await, started: int | None, setting: Setting) -> Steps:
    """The promise's number is another's, or its name is: nothing was made."""
    if request.insert is not None:
        yield from forget(request.insert.id)
    if started is not None:
        yield from withdraw(Withdraw(started), setting)
    promise = request.promise
    if promise.kind is PromiseKind.PROMISE:
        values = {"execution": promise.execution, "name": promise.name}
        named = yield "find_promise_by_name", values
        if named:
            return KeyTaken(promise_of(named[0]))
    return Gone()


def _is_same(child: Existing, request: Await) -> bool:
    assert request.start is not None
    assert request.start.insert is not None
    return (
        child.execution is not None
        and child.record.fingerprint == request.start.insert.operation.fingerprint
    )


def _call(promise: Promise, child: Existing | None, now: int) -> Steps:
    """Have the child tell of its end; when it is over already, that is told at once."""
    rows = yield "be_called", {"id": promise.target}
    status, result, sort = rows[0]
    if child is None or not Status(status).is_over:
        return None
    state = PromiseState.RESOLVED if status == Status.SUCCEEDED else PromiseState.REJECTED
    assert promise.target is not None
    told_by = execution_id_of(Sort(sort), promise.target)
    return (yield from settle(promise, state, bytes(result or b"null"), told_by, now))


def _lie_down(request: Await) -> Generator[Step, list[Row], bool]:
    if request.advance.waits is None:
        return False
    return (yield from lie_down(request.advance))


def add_token(request: AddToken, setting: Setting) -> Steps:
    rows = yield from hold(request, setting)
    if not is_held(rows, request):
        return Lost()
    values = {"digest": request.token, "execution": request.id, "seq": request.seq}
    yield "add_token_at", values
    return Advanced()


def spawn(request: Spawn, setting: Setting) -> Steps:
    advance, entry = request.advance, request.entry
    rows = yield from hold(advance, setting)
    if not is_held(rows, advance):
        return Lost()
    yield from append(advance.id, advance.entries)
    done = yield "entry_at", {"execution": advance.id, "seq": entry.seq}
    if done:
        return (yield from _spawned_before(request, bytes(done[0][0])))
    answer = yield from start(request.start, setting)
    if isinstance(answer, Gone):
        return answer
    existing = answer if isinstance(answer, Existing) else None
    if existing is not None and not _fits(existing, request):
        return Spawned(entry, existing, is_journaled=False)
    execution = request.start.execution if existing is None else existing.execution
    assert execution is not None
    entry = entry._replace(body=f'"{execution.public_id}"'.encode())
    yield from append(advance.id, (entry,))
    return Spawned(entry, existing, is_new=existing is None)


def _spawned_before(request: Spawn, body: bytes) -> Generator[Step, list[Row], Spawned]:
    """It is journaled: the commit was not heard of."""
    entry = request.entry._replace(body=body)
    if body == f'"{request.start.execution.public_id}"'.encode():
        return Spawned(entry, is_new=True)
    return Spawned(entry, (yield from _holder_of(request.start)))


def _fits(existing: Existing, request: Spawn) -> bool:
    insert = request.start.insert
    same = insert is not None and existing.record.fingerprint == insert.operation.fingerprint
    return same and existing.execution is not None
