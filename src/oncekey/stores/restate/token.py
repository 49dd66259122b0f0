"""The object `oncekey.Token`, one for each digest of a token: which promise it is good for."""

from __future__ import annotations

from typing import Any

from oncekey.stores.restate.objects import BYTES, add, new_object
from oncekey.stores.restate.values import pack, unpack

SERVICE = "oncekey.Token"
_PLACE = "place"


async def put(ctx: Any, body: bytes) -> bytes:
    """`[execution or None, promise]`: a token is good for one promise only, the first."""
    if await ctx.get(_PLACE, serde=BYTES) is None:
        ctx.set(_PLACE, body, serde=BYTES)
    return pack(None)


async def find(ctx: Any, _: bytes) -> bytes:
    kept: bytes | None = await ctx.get(_PLACE, serde=BYTES)
    return pack(None) if kept is None else kept


async def forget(ctx: Any, body: bytes) -> bytes:
    """`holder`: the execution, or the promise without one, that is forgotten."""
    kept = await ctx.get(_PLACE, serde=BYTES)
    if kept is not None:
        execution, promise = unpack(kept)
        if unpack(body) == (promise if execution is None else execution):
            ctx.clear_all()
    return pack(None)


def token_object() -> Any:
    made = new_object(SERVICE)
    add(made, "put", put)
    add(made, "forget", forget)
    add(made, "find", find, kind="shared")
    return made
