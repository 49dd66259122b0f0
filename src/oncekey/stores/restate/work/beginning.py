"""Handlers of `oncekey.Execution`: how it is made, advances, and goes from hand to hand."""

from __future__ import annotations

from typing import Any

from oncekey.core.answers import Lost, Picked, Started
from oncekey.core.execution import Execution, Status
from oncekey.core.ports import Gone
from oncekey.core.work import Ending, HandBack, Withdraw
from oncekey.stores.memory.executions import MemoryExecutions, is_same_start
from oncekey.stores.restate.asked import Creation
from oncekey.stores.restate.failures import LEFT
from oncekey.stores.restate.picking import Busy
from oncekey.stores.restate.values import pack, unpack
from oncekey.stores.restate.work.calls import send
from oncekey.stores.restate.work.following import EXECUTIONS, REQUESTS, follow, ring
from oncekey.stores.restate.work.held import ENTRY, PROMISE, Held, held


def oracle(of: Held, request: Any) -> Any:
    return MemoryExecutions(of.kept).answers()[type(request)](request)


async def create(ctx: Any, body: bytes) -> bytes:
    """A `Creation`. Answers Started, the execution when it is that one and has gone on, or Gone."""
    asked: Creation = unpack(body)
    at = await held(ctx, asked.owner)
    if at.before is not None:
        return pack(_made_before(at, asked))
    owner = asked.owner if asked.execution.status is Status.RUNNING else 0
    at.kept.executions[at.number] = asked.execution._replace(owner=owner, wakes=0)
    at.kept.append(at.number, asked.entries)
    at.ties.maker = _maker_of(asked)
    if asked.digest is not None:
        at.ties.digest = asked.digest.hex()
    if asked.parent is not None and asked.promise:
        at.ties.callers = [(asked.parent, asked.promise)]
    follow(at)
    return pack(Started(owner))


def _maker_of(asked: Creation) -> list[int]:
    return [asked.owner, asked.parent or 0, asked.promise, asked.seq]


def _made_before(at: Held, asked: Creation) -> Started | Execution | Gone:
    made = at.before
    assert made is not None
    owner = asked.owner if asked.execution.status is Status.RUNNING else 0
    digest = "" if asked.digest is None else asked.digest.hex()
    ours = at.ties.maker == _maker_of(asked) and asked.execution.forked_from is None
    if ours and asked.parent is not None:
        return Started(owner)
    if ours and digest == at.ties.digest and is_same_start(made, asked.execution, owner):
        return Started(owner)
    if digest and digest == at.ties.digest:
        return made
    _refuse(at, asked)
    return Gone()


def _refuse(at: Held, asked: Creation) -> None:
    """Whatever relied on its being made is told."""
    if asked.digest is not None:
        send(at.ctx, REQUESTS, asked.digest.hex(), "forget", at.number)
    if asked.parent is not None:
        told = [asked.promise, asked.seq]
        send(at.ctx, EXECUTIONS, f"{asked.parent:016x}", "disown", told)


async def withdraw(ctx: Any, body: bytes) -> bytes:
    """`owner`: undo a start that nobody else was told of. Answers whether there was one."""
    at = await held(ctx, unpack(body))
    made = at.before
    if made is None or made.owner not in {0, at.kept.owner}:
        return pack(False)
    names = await ctx.state_keys()
    is_used = any(name.startswith((ENTRY, PROMISE)) for name in names)
    if is_used or not oracle(at, Withdraw(at.number)):
        return pack(False)
    if at.ties.digest:
        send(ctx, REQUESTS, at.ties.digest, "forget", at.number)
    ctx.clear_all()
    return pack(True)


# -- running -----------------------------------------------------------------------------------


async def advance(ctx: Any, body: bytes) -> bytes:
    """`[Advance, owner]`. Answers `[Advanced or Lost, who is told of its end]`."""
    request, owner = unpack(body)
    at = await held(ctx, owner)
    await at.entries_at(entry.seq for entry in request.entries)
    if request.ending is not None and request.ending.status.is_over:
        await at.live()
    answer = oracle(at, request)
    follow(at)
    return pack([answer, at.told])


async def hand_back(ctx: Any, body: bytes) -> bytes:
    """`fence`; answers whether it was given back."""
    at = await held(ctx)
    count = oracle(at, HandBack(((at.number, unpack(body)),)))
    follow(at)
    return pack(count == 1)


async def pick(ctx: Any, body: bytes) -> bytes:
    """`[dispatch, gone, owner, most, fails, now]`: take it under that dispatch, or without one;
    `gone` is an owner that does not live any more. When `most` have ended so, nobody takes it."""
    count, gone, owner, most, fails, now = unpack(body)
    at = await held(ctx, owner)
    made = at.before
    if made is None or count not in {None, at.ties.dispatch}:
        return pack(Lost())
    if made.status is Status.RUNNING and made.owner not in {owner, gone}:
        return pack(Busy(made.owner))
    again = count is None and made.owner == owner
    if made.status not in {Status.READY, Status.RUNNING} or again:
        return pack(Lost())
    if _is_left(at, gone) and at.ties.deaths >= most > 0:
        return await _given_up(at, Status.FAILED if fails else Status.PAUSED, now)
    at.kept.take(made)
    at.is_picked, at.is_taken = count is not None, count is None
    await at.journal()
    await at.live()
    follow(at)
    return pack(picked(at))


def _is_left(at: Held, gone: int) -> bool:
    """Whether its process has ended, which is counted until it is dispatched anew."""
    made = at.before
    if made is None or made.status is not Status.RUNNING or made.owner != gone:
        return False
    if at.ties.died_at != at.ties.dispatch:
        at.ties.died_at, at.ties.deaths = at.ties.dispatch, 0
    at.ties.deaths += 1
    return True


async def halt(ctx: Any, body: bytes) -> bytes:
    """`[tenant, now]`: nobody is called for it, so that it is paused. Answers whether it is now."""
    tenant, now = unpack(body)
    at = await held(ctx)
    made = at.before
    if made is None or made.tenant != tenant or made.status not in {Status.READY, Status.RUNNING}:
        return pack(False)
    await _given_up(at, Status.PAUSED, now)
    return pack(True)


async def _given_up(at: Held, status: Status, now: int) -> bytes:
    assert at.before is not None
    await at.live()
    at.kept.end(at.number, Ending(status, LEFT, at.before.keep), now, from_outside=True)
    follow(at)
    ring(at)
    return pack(Lost())


def picked(at: Held) -> Picked:
    """With everything a replay needs. A promise that nothing knows of is made once more."""
    execution = at.execution
    assert execution is not None
    found = [
        promise
        for promise in at.kept.promises_of(at.number)
        if promise.id in at.ties.live and promise.id not in at.ties.unregistered
    ]
    return Picked(execution, at.kept.journal(at.number), found)


# -- reading -----------------------------------------------------------------------------------


async def load(ctx: Any, body: bytes) -> bytes:
    """`fence`."""
    at, fence = await held(ctx), unpack(body)
    made = at.before
    if made is None or (made.status, made.fence) != (Status.RUNNING, fence):
        return pack(Lost())
    await at.journal()
    await at.live()
    return pack(picked(at))


async def find(ctx: Any, _: bytes) -> bytes:
    return pack((await held(ctx)).execution)


async def journal(ctx: Any, _: bytes) -> bytes:
    at = await held(ctx)
    await at.journal()
    return pack(at.kept.journal(at.number))
