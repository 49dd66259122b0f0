"""The object `oncekey.Topic`, one for each topic of a tenant: who waits for its events.

Waits come and go without a look at the others; only who matches an event reads them.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

from oncekey.core.execution import Promise
from oncekey.stores.restate.objects import BYTES, add, new_object
from oncekey.stores.restate.values import pack, unpack

SERVICE = "oncekey.Topic"
_WAIT, _DROPPED = "w:", "x:"
# By then, whoever was still registering a wait has done so.
_LATE = timedelta(minutes=1)
_PAGE_BYTES = 4 << 20


def topic_id(tenant: str, topic: str) -> str:
    """The length says where the tenant ends, so that no two topics are taken for one."""
    told = f"{len(tenant)}:{tenant}{topic}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(told).hexdigest()


async def add_wait(ctx: Any, body: bytes) -> bytes:
    """A promise that is pending: it waits for an event from now on."""
    promise: Promise = unpack(body)
    ctx.set(_named(_WAIT, promise.id), body, serde=BYTES)
    return pack(True)


async def drop_wait(ctx: Any, body: bytes) -> bytes:
    """The number of a promise that is settled. When its wait is still on its way here, it is not
    to be seen when it comes."""
    number = unpack(body)
    if await ctx.get(_named(_WAIT, number), serde=BYTES) is not None:
        ctx.clear(_named(_WAIT, number))
    else:
        ctx.set(_named(_DROPPED, number), b"", serde=BYTES)
        ctx.generic_send(SERVICE, "bury", body, key=ctx.key(), send_delay=_LATE)
    return pack(True)


async def bury(ctx: Any, body: bytes) -> bytes:
    """The wait of that number has come too late, or had been dropped before."""
    number = unpack(body)
    ctx.clear(_named(_WAIT, number))
    ctx.clear(_named(_DROPPED, number))
    return pack(True)


async def drop_waits(ctx: Any, body: bytes) -> bytes:
    """Numbers of promises that are settled, whose waits are here."""
    for number in unpack(body):
        ctx.clear(_named(_WAIT, number))
    return pack(True)


async def waits(ctx: Any, body: bytes) -> bytes:
    """`[after, until, limit]`: those made by then, oldest first, and whether these are all."""
    after, until, limit = unpack(body)
    names = await ctx.state_keys()
    dropped = {name[len(_DROPPED) :] for name in names if name.startswith(_DROPPED)}
    first = _named(_WAIT, after)
    found: list[Promise] = []
    size = 0
    for name in sorted(name for name in names if name.startswith(_WAIT) and name > first):
        if len(found) >= limit or size > _PAGE_BYTES:
            return pack([found, False])
        kept = None
        if name[len(_WAIT) :] not in dropped:
            kept = await ctx.get(name, serde=BYTES)
        if kept is not None and (wait := unpack(kept)).created_at <= until:
            found.append(wait)
            size += len(kept)
    return pack([found, True])


async def find_waits(ctx: Any, body: bytes) -> bytes:
    """Those of these numbers that are here."""
    asked = [ctx.get(_named(_WAIT, number), serde=BYTES) for number in unpack(body)]
    kept = [await each for each in asked]
    return pack([unpack(each) for each in kept if each is not None])


def _named(kind: str, number: int) -> str:
    return f"{kind}{number:016x}"


def topic_object() -> Any:
    made = new_object(SERVICE)
    for each in (add_wait, drop_wait, drop_waits, bury):
        add(made, each.__name__, each, lazy=True)
    add(made, "waits", waits, kind="shared")
    add(made, "find_waits", find_waits, kind="shared", lazy=True)
    return made
