"""Handlers of `oncekey.Execution`: what it waits for is made, at its position, once.

A promise that others have to know of, by its key, its topic or the child it is for, is made first
and registered there by whoever asked; until then the execution does not lie down, and a replay
makes it once more.
"""

from __future__ import annotations

from typing import Any

from oncekey.core.answers import Advanced, Awaited, Lost, Spawned
from oncekey.core.execution import Promise, PromiseKind, PromiseState
from oncekey.core.ports import Gone
from oncekey.core.work import AddToken, Await, Spawn
from oncekey.stores.memory.awaiting import MemoryAwaiting
from oncekey.stores.memory.executions import MemoryExecutions
from oncekey.stores.memory.kept import entry_of
from oncekey.stores.memory.promises import MemoryPromises
from oncekey.stores.restate.asked import Position, Registered
from oncekey.stores.restate.values import pack, unpack
from oncekey.stores.restate.work.following import follow
from oncekey.stores.restate.work.held import Held, held
from oncekey.stores.restate.work.settling import told_of


def oracle(at: Held, request: Await | AddToken | Spawn) -> Any:
    executions, promises = MemoryExecutions(at.kept), MemoryPromises(at.kept)
    rooms = MemoryAwaiting(at.kept, executions, promises)
    return rooms.answers()[type(request)](request)


async def hold(ctx: Any, body: bytes) -> bytes:
    """`[Advance, seq, owner]`: journal what was done, before something else is done for it.
    Answers `Position` or Lost."""
    advance, seq, owner = unpack(body)
    at = await held(ctx, owner)
    if not at.kept.hold(advance.id, advance.fence):
        return pack(Lost())
    await at.entries_at({seq, *(entry.seq for entry in advance.entries)})
    at.kept.append(at.number, advance.entries)
    promise = await at.promise_at(seq)
    follow(at)
    entry = at.kept.journals.get(at.number, {}).get(seq)
    waits = promise is not None and promise.id in at.ties.unregistered
    return pack(Position(promise, entry, is_registered=not waits))


async def wait(ctx: Any, body: bytes) -> bytes:
    """`[Await, owner, time]`; its child, if it has one, has no key. Answers `[answer, whether the
    promise is still to be registered, whether a child is made now, forked from]`."""
    request, owner, there = unpack(body)
    at = await held(ctx, owner)
    at.timed = (request.promise.due_at, there)
    advance, insert = request.advance, request.insert
    await at.entries_at(entry.seq for entry in advance.entries)
    known = await at.promise_at(request.promise.seq)
    if request.promise.kind is PromiseKind.PROMISE:
        await at.promise_named(request.promise.name)
    registers = _is_to_register(at, request, known)
    if registers:
        request = request._replace(advance=advance._replace(waits=None))
    answer = oracle(at, _keyed(request))
    made = at.kept.promises.get(answer.promise.id) if isinstance(answer, Awaited) else None
    if made is None or made.state is not PromiseState.PENDING:
        registers = False
    elif registers:
        digest = b"" if insert is None else insert.digest
        at.ties.unregistered[made.id] = digest.hex()
    if made is not None and request.token is not None:
        at.add_token(request.token)
    follow(at)
    forked_from = None if at.before is None else at.before.forked_from
    return pack([answer, registers, len(at.kept.executions) > 1, forked_from])


def _is_to_register(at: Held, request: Await, known: Promise | None) -> bool:
    promise = request.promise
    if known is not None and PromiseKind.RETRY not in {known.kind, promise.kind}:
        return known.id in at.ties.unregistered
    is_event = promise.kind is PromiseKind.EVENT and promise.topic is not None
    return request.insert is not None or is_event or promise.target is not None


def _keyed(request: Await) -> Await:
    """Its key is claimed elsewhere."""
    insert = request.insert
    if insert is None:
        return request
    promise = request.promise._replace(
        key=insert.operation.ref.key, key_expires_at=insert.expires_at
    )
    return request._replace(promise=promise, insert=None)


async def registered(ctx: Any, body: bytes) -> bytes:
    """`Registered`. Answers Awaited; Lost; Gone when there is no such promise."""
    asked: Registered = unpack(body)
    at = await held(ctx, asked.owner)
    if not at.kept.hold(at.number, asked.fence):
        return pack(Lost())
    await at.to_settle([asked.promise])
    if at.kept.promise(asked.promise) is None:
        return pack(Gone())
    if asked.told is not None:
        told_of(at, asked.told)
    at.registered(asked.promise)
    answer = _awaited(at, asked)
    follow(at)
    return pack(answer)


def _awaited(at: Held, asked: Registered) -> Awaited:
    promise = at.kept.promise(asked.promise)
    assert promise is not None
    if promise.state is not PromiseState.PENDING:
        return Awaited(promise, entry_of(promise))
    return Awaited(promise, None, at.kept.lie_down(at.number, asked.waits))


async def refuse(ctx: Any, body: bytes) -> bytes:
    """`[fence, promise, owner]`: a promise that could not be registered is not made. Answers None,
    Awaited when it is settled by now, or Lost."""
    fence, number, owner = unpack(body)
    at = await held(ctx, owner)
    if not at.kept.hold(at.number, fence):
        return pack(Lost())
    await at.promises([number])
    promise = at.kept.promise(number)
    if promise is not None and promise.state is not PromiseState.PENDING:
        return pack(Awaited(promise, entry_of(promise)))
    at.kept.promises.pop(number, None)
    follow(at)
    return pack(None)


# -- children and tokens -----------------------------------------------------------------------


async def spawn(ctx: Any, body: bytes) -> bytes:
    """`[Spawn, owner]`; the child has no key. Answers `[answer, whether it is made now]`."""
    request, owner = unpack(body)
    at = await held(ctx, owner)
    entries = request.advance.entries
    await at.entries_at({request.entry.seq, *(entry.seq for entry in entries)})
    answer: Spawned | Lost = oracle(at, request)
    follow(at)
    return pack([answer, len(at.kept.executions) > 1])


async def disown(ctx: Any, body: bytes) -> bytes:
    """`[promise, seq]`: the child that was started there has the number of another execution. What
    said that it was started is undone, and the execution finds out when it goes on."""
    number, seq = unpack(body)
    at = await held(ctx)
    if number:
        await at.promises([number])
        promise = at.kept.promises.get(number)
        if promise is None or promise.state is not PromiseState.PENDING:
            return pack(False)
        del at.kept.promises[number]
        at.kept.wake(at.number)
        follow(at)
    else:
        at.clear_entry(seq)
    return pack(True)


async def add_token(ctx: Any, body: bytes) -> bytes:
    """`[AddToken, owner]`. Answers `[Advanced or Lost, the promise]`."""
    request, owner = unpack(body)
    at = await held(ctx, owner)
    promise = await at.promise_at(request.seq)
    answer: Advanced | Lost = oracle(at, request)
    if promise is not None and isinstance(answer, Advanced):
        at.add_token(request.token)
    follow(at)
    return pack([answer, None if promise is None else promise.id])


# -- reading -----------------------------------------------------------------------------------


async def promise(ctx: Any, body: bytes) -> bytes:
    """`[number, name]`: the promise of that number, or the one that has the name."""
    number, name = unpack(body)
    at = await held(ctx)
    if number is not None:
        await at.promises([number])
        found = at.kept.promise(number)
    else:
        found = await at.promise_named(name)
    return pack(found)


async def unkey(ctx: Any, body: bytes) -> bytes:
    """`number`: the promise of that number, or the execution itself, has its key no more."""
    number = unpack(body)
    at = await held(ctx)
    await at.promises([number])
    promise, execution = at.kept.promises.get(number), at.before
    if promise is not None:
        at.kept.promises[number] = promise._replace(key=None, key_expires_at=None)
    elif execution is not None and number == at.number:
        at.kept.executions[number] = execution._replace(key=None)
        at.ties.digest = ""
    follow(at)
    return pack(None)
