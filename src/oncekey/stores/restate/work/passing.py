"""Handlers of `oncekey.Execution`: what time does to it, and who cancels, resumes or forks it."""

from __future__ import annotations

from typing import Any

from oncekey.core.work import Control, Due
from oncekey.stores.memory.control import MemoryControl
from oncekey.stores.memory.tidying import MemoryTidying
from oncekey.stores.restate.asked import Creation
from oncekey.stores.restate.failures import LATE, OVERDUE
from oncekey.stores.restate.values import pack, unpack
from oncekey.stores.restate.work.calls import send
from oncekey.stores.restate.work.following import TOKENS, follow, ring
from oncekey.stores.restate.work.held import held

_ALL = 1 << 30


async def tick(ctx: Any, body: bytes) -> bytes:
    """`now`: what was due by then is settled, and what is due later is expected."""
    now = unpack(body)
    at = await held(ctx)
    if at.before is None:
        return pack(None)
    if at.ties.tick is not None and at.ties.tick <= now:
        at.ties.tick = None
    await at.to_settle(at.ties.live)
    MemoryTidying(at.kept).answers()[Due](Due(now, LATE, OVERDUE, _ALL))
    follow(at)
    ring(at)
    return pack(None)


async def ripen(ctx: Any, body: bytes) -> bytes:
    """`Due`, of this execution only. Answers `[Ripe, who is told of its end]`."""
    at = await held(ctx)
    await at.to_settle(at.ties.live)
    ripe = MemoryTidying(at.kept).answers()[Due](unpack(body))
    follow(at)
    ring(at)
    return pack([ripe, at.told])


async def forget(ctx: Any, body: bytes) -> bytes:
    """`now`: nothing is left of it, if its time is over by then. Answers whether it was."""
    at, now = await held(ctx), unpack(body)
    made = at.before
    if made is None or made.expires_at is None or made.expires_at > now:
        return pack(False)
    for token in await at.tokens():
        send(ctx, TOKENS, token, "forget", at.number)
    ctx.clear_all()
    return pack(True)


async def control(ctx: Any, body: bytes) -> bytes:
    """`Control`, to cancel or to resume; its request key is another object's. Answers
    `[Controlled, who is told of its end]`."""
    asked: Control = unpack(body)
    at = await held(ctx)
    await at.live()
    answer = MemoryControl(at.kept).answers()[Control](asked)
    follow(at)
    ring(at)
    return pack([answer, at.told])


async def fork(ctx: Any, body: bytes) -> bytes:
    """`Control`: what a fork of it begins with. Answers `[Controlled, Creation or None]`."""
    asked: Control = unpack(body)
    at = await held(ctx)
    await at.journal()
    answer = MemoryControl(at.kept).answers()[Control](asked)
    made = at.kept.executions.get(asked.fork)
    entries = tuple(at.kept.journal(asked.fork))
    return pack([answer, None if made is None else Creation(made, 0, entries=entries)])
