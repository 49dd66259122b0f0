"""Handlers of `oncekey.Execution`: what it waits for is settled, and it is told."""

from __future__ import annotations

from typing import Any

from oncekey.core.answers import AlreadySettled, Settled, Woken
from oncekey.core.execution import PromiseKind, PromiseState
from oncekey.stores.restate.asked import Settling, Told, Unregistered
from oncekey.stores.restate.values import pack, unpack
from oncekey.stores.restate.work.following import follow, ring
from oncekey.stores.restate.work.held import Held, held


async def settle(ctx: Any, body: bytes) -> bytes:
    """`Settling`: a promise of it, by somebody outside. Answers Settled, AlreadySettled, None or
    `Unregistered`."""
    asked: Settling = unpack(body)
    at = await held(ctx, asked.owner)
    if asked.number is not None:
        number: int | None = asked.number
    else:
        named = await at.promise_named(asked.name or "")
        number = None if named is None else named.id
    await at.to_settle([] if number is None else [number])
    promise = None if number is None else at.kept.promise(number)
    if promise is None or promise.kind is not PromiseKind.PROMISE:
        return pack(None)
    if promise.tenant != asked.tenant or asked.name not in {None, promise.name}:
        return pack(None)
    digest = at.ties.unregistered.get(promise.id)
    if digest and not asked.is_first:
        return pack(Unregistered(bytes.fromhex(digest)))
    settled = at.kept.settle(promise.id, asked.state, asked.body, asked.settled_by, asked.now)
    if settled is None:
        return pack(AlreadySettled(promise))
    settled = settled._replace(woken=_adopted(at, settled.woken, asked))
    follow(at)
    return pack(settled)


def _adopted(at: Held, woken: Woken | None, asked: Settling) -> Woken | None:
    """What was woken is taken at once, when the asking process says that it can be."""
    execution = at.kept.executions.get(at.number)
    if woken is None or not woken.ready or execution is None:
        return woken
    if (execution.sort, execution.name) not in asked.adopt:
        return woken
    taken = at.kept.take(execution)
    return woken._replace(ready=False, fence=taken.fence, wakes=taken.wakes)


async def tell(ctx: Any, body: bytes) -> bytes:
    """`Told`: what a promise waited for has happened. Answers Woken or None."""
    return pack(await _told(ctx, unpack(body)))


async def match(ctx: Any, body: bytes) -> bytes:
    """`[promise, data, told by, now]`: an event fits. Answers Woken or None."""
    number, data, told_by, now = unpack(body)
    return pack(await _told(ctx, Told(number, PromiseState.RESOLVED, data, told_by, now)))


async def _told(ctx: Any, told: Told) -> Woken | None:
    at = await held(ctx)
    await at.to_settle([told.promise])
    settled = told_of(at, told)
    if settled is None:
        return None
    follow(at)
    ring(at)
    return settled.woken


def told_of(at: Held, told: Told) -> Settled | None:
    number, state, body, told_by, now = told
    return at.kept.settle(number, state, body, told_by, now)


async def trouble(ctx: Any, body: bytes) -> bytes:
    """`[promise, text]`: what went wrong when an event was put to its condition."""
    number, text = unpack(body)
    at = await held(ctx)
    await at.promises([number])
    promise = at.kept.promises.get(number)
    if promise is None or promise.state is not PromiseState.PENDING:
        return pack(False)
    at.kept.promises[number] = promise._replace(trouble=text)
    follow(at)
    return pack(True)


async def call(ctx: Any, body: bytes) -> bytes:
    """`[execution, promise]`: that one waits for the end of this. Answers the execution."""
    caller, promise = unpack(body)
    at = await held(ctx)
    made = at.execution
    if made is not None and not made.status.is_over:
        if (caller, promise) not in at.ties.callers:
            at.ties.callers.append((caller, promise))
        follow(at)
    return pack(made)
