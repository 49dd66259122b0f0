"""Handlers of `oncekey.Execution`: what time does to it, and who cancels, resumes or forks it."""

from __future__ import annotations

from typing import Any

from oncekey.core.work import Due
from oncekey.stores.memory.tidying import MemoryTidying
from oncekey.stores.restate.failures import LATE, OVERDUE
from oncekey.stores.restate.values import pack, unpack
from oncekey.stores.restate.work.calls import send
from oncekey.stores.restate.work.following import TOKENS, follow
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
    await at.live()
    MemoryTidying(at.kept).answers()[Due](Due(now, LATE, OVERDUE, _ALL))
    follow(at)
    at.ring_if_running()
    return pack(None)


async def ripen(ctx: Any, body: bytes) -> bytes:
    """`Due`, of this execution only."""
    at = await held(ctx)
    await at.live()
    ripe = MemoryTidying(at.kept).answers()[Due](unpack(body))
    follow(at)
    at.ring_if_running()
    return pack(ripe)


async def forget(ctx: Any, body: bytes) -> bytes:
    """`now`: nothing is left of it, if its time is over by then. Answers whether it was."""
    at, now = await held(ctx), unpack(body)
    made = at.before
    if made is None or made.expires_at is None or made.expires_at > now:
        return pack(False)
    for token in at.ties.tokens:
        send(ctx, TOKENS, token, "forget", at.number)
    ctx.clear_all()
    return pack(True)
