"""The objects behind the bell. `oncekey.Bell` counts the rings of a space and knows who waits for
the next one; an invocation of `oncekey.Ear` is such a wait."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
from restate import select

from oncekey.stores.restate.objects import BYTES, add, add_to_service, new_object, new_service
from oncekey.stores.restate.values import pack, unpack

BELL, EAR, ALL = "oncekey.Bell", "oncekey.Ear", "all"
# How long an ear waits, in seconds; whoever listens calls again.
WAIT = 15
_STATE = "bell"
# Of how many processes it is known who rang; of older rings only when the last one was.
_RINGERS = 64


class Bell(msgspec.Struct):
    """Processes are named by their owner numbers; `0` is whoever has none."""

    count: int = 0
    """How often it was rung."""
    rang: dict[str, int] = {}
    """The count at the last ring of each process."""
    anybody: int = 0
    """The count at the last ring of all others."""
    ears: dict[str, str] = {}
    """Awakeables of the processes that wait."""

    def ring(self, owner: str) -> list[str]:
        """Whom to wake: a process does not hear itself."""
        self.count += 1
        self.rang.pop(owner, None)
        self.rang[owner] = self.count
        while len(self.rang) > _RINGERS:
            self.anybody = self.rang.pop(next(iter(self.rang)))
        woken = {each: ear for each, ear in self.ears.items() if each != owner}
        self.ears = {each: ear for each, ear in self.ears.items() if each == owner}
        return list(woken.values())

    def has_rung(self, seen: int, owner: str) -> bool:
        """Whether anybody but the owner has, after the count was `seen`."""
        others = (count for each, count in self.rang.items() if each != owner)
        return max(self.anybody, *others, 0) > seen


_decode = msgspec.json.Decoder(Bell).decode


async def _load(ctx: Any) -> Bell:
    kept = await ctx.get(_STATE, serde=BYTES)
    return Bell() if kept is None else _decode(kept)


def _keep(ctx: Any, bell: Bell) -> None:
    ctx.set(_STATE, msgspec.json.encode(bell), serde=BYTES)


async def ring(ctx: Any, body: bytes) -> bytes:
    """The owner that rings; None when it is no process."""
    bell = await _load(ctx)
    for ear in bell.ring(str(unpack(body) or 0)):
        ctx.resolve_awakeable(ear, pack(bell.count), serde=BYTES)
    _keep(ctx, bell)
    return pack(bell.count)


async def subscribe(ctx: Any, body: bytes) -> bytes:
    """`[owner, seen, awakeable]`: one for each process; another one takes its place."""
    owner, seen, ear = unpack(body)
    bell = await _load(ctx)
    if bell.has_rung(seen, str(owner)):
        ctx.resolve_awakeable(ear, pack(bell.count), serde=BYTES)
    else:
        bell.ears[str(owner)] = ear
        _keep(ctx, bell)
    return pack(None)


async def count(ctx: Any, _: bytes) -> bytes:
    return pack((await _load(ctx)).count)


async def listen(ctx: Any, body: bytes) -> bytes:
    """`[key of the bell, owner, seen]`: the count, once others have rung; None when time is up."""
    bell, owner, seen = unpack(body)
    ear, rung = ctx.awakeable(serde=BYTES)
    ctx.generic_send(BELL, "subscribe", pack([owner, seen, ear]), key=bell)
    which, told = await select(rung=rung, over=ctx.sleep(timedelta(seconds=WAIT)))
    return told if which == "rung" else pack(None)


def bell_objects() -> list[Any]:
    bell = new_object(BELL)
    add(bell, "ring", ring)
    add(bell, "subscribe", subscribe)
    add(bell, "count", count, kind="shared")
    ear = new_service(EAR)
    add_to_service(ear, "listen", listen)
    return [bell, ear]
