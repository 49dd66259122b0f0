"""The object `oncekey.Promise`, one for each promise that no execution waits for."""

from __future__ import annotations

from typing import Any

import msgspec

from oncekey.core.answers import AlreadySettled, Awaited, Settled
from oncekey.core.execution import Promise, PromiseState
from oncekey.core.ports import Gone
from oncekey.core.work import Due
from oncekey.stores.memory.claims import Claims
from oncekey.stores.memory.kept import Kept
from oncekey.stores.memory.tidying import MemoryTidying
from oncekey.stores.restate.asked import Settling, Told, Unregistered
from oncekey.stores.restate.failures import LATE
from oncekey.stores.restate.objects import BYTES, add, new_object
from oncekey.stores.restate.ringing import ALL, BELL
from oncekey.stores.restate.values import numbered, pack, unnumbered, unpack
from oncekey.stores.restate.work.calls import id_of, send, time_here, wall_clock
from oncekey.stores.restate.work.following import PROMISES, TOKENS
from oncekey.stores.restate.work.held import DUE, UNTIL, KeyEffects

SERVICE = PROMISES
PROMISE, _TOKENS, _NEW = "promise", "tokens", "new"
# Whoever was registering its key by then is gone, and has told nobody of it.
_ABANDONED = 10 * 60 * 1000


class Alone:
    """The promise of this object, and what becomes of it."""

    def __init__(self, ctx: Any, promise: Promise | None) -> None:
        self.ctx = ctx
        self.there: int | None = None
        """The time by the wall clock of its maker."""
        self.before = promise
        keys: Claims = KeyEffects()
        self.kept = Kept(keys, 0)
        assert isinstance(keys, KeyEffects)
        keys.kept = self.kept
        if promise is not None:
            self.kept.promises[promise.id] = promise

    @property
    def promise(self) -> Promise | None:
        return next(iter(self.kept.promises.values()), None)

    def put(self, promise: Promise) -> None:
        self.kept.promises[promise.id] = promise

    def settle(self, told: Told) -> Settled | None:
        number, state, body, told_by, now = told
        return self.kept.settle(number, state, body, told_by, now)

    def save(self) -> None:
        after = self.promise
        if after is None or after is self.before:
            return
        ctx = self.ctx
        ctx.set(PROMISE, numbered(after.id, after), serde=BYTES)
        is_pending = after.state is PromiseState.PENDING
        if self.before is None and after.due_at is not None and is_pending:
            ctx.set(DUE, _time(after.due_at), serde=BYTES)
            at = after.due_at if self.there is None else time_here(after.due_at, self.there)
            send(ctx, SERVICE, id_of(ctx), "tick", after.due_at, at=at)
        kept_until = self.kept.promises_kept_until.get(after.id)
        if kept_until is not None:
            ctx.clear(DUE)
            ctx.set(UNTIL, _time(kept_until), serde=BYTES)
            send(ctx, SERVICE, id_of(ctx), "forget", kept_until, at=kept_until)


def _time(at: int) -> bytes:
    return f"{at:016x}".encode()


async def alone(ctx: Any) -> Alone:
    kept = await ctx.get(PROMISE, serde=BYTES)
    return Alone(ctx, None if kept is None else unnumbered(kept))


# -- the handlers ------------------------------------------------------------------------------


async def make(ctx: Any, body: bytes) -> bytes:
    """`[promise, digest of its key, time]`: Awaited, or Gone when its number is another's."""
    promise, digest, there = unpack(body)
    at = await alone(ctx)
    known = at.promise
    if known is not None:
        same = (known.tenant, known.name, known.created_at) == (
            promise.tenant,
            promise.name,
            promise.created_at,
        )
        return pack(Awaited(known) if same else Gone())
    at.there = there
    at.put(promise)
    at.save()
    if digest is not None:
        ctx.set(_NEW, digest, serde=BYTES)
        send(ctx, SERVICE, id_of(ctx), "abandon", None, at=wall_clock() + _ABANDONED)
    return pack(Awaited(promise))


async def registered(ctx: Any, body: bytes) -> bytes:
    """`Told` or None: its key is claimed, and maybe something has come for it before. Answers the
    promise."""
    told = unpack(body)
    at = await alone(ctx)
    ctx.clear(_NEW)
    if told is not None:
        at.settle(told)
        at.save()
    return pack(at.promise)


async def abandon(ctx: Any, _: bytes) -> bytes:
    """Its key is another's, or was never claimed: it is not made."""
    at = await alone(ctx)
    is_new = await ctx.get(_NEW, serde=BYTES) is not None
    if is_new and at.promise is not None and at.promise.state is PromiseState.PENDING:
        ctx.clear_all()
    return pack(None)


async def settle(ctx: Any, body: bytes) -> bytes:
    """`Settling`. Answers Settled, AlreadySettled, None or `Unregistered`."""
    asked: Settling = unpack(body)
    at = await alone(ctx)
    promise = at.promise
    if promise is None or promise.tenant != asked.tenant or asked.name not in {None, promise.name}:
        return pack(None)
    if promise.state is PromiseState.PENDING and promise.key is not None and not asked.is_first:
        digest = await ctx.get(_NEW, serde=BYTES)
        if digest is not None:
            return pack(Unregistered(digest))
    told = Told(promise.id, asked.state, asked.body, asked.settled_by, asked.now)
    settled = at.settle(told)
    at.save()
    return pack(AlreadySettled(promise) if settled is None else settled)


async def add_token(ctx: Any, body: bytes) -> bytes:
    """A digest, in hexadecimal digits."""
    kept = await ctx.get(_TOKENS, serde=BYTES)
    tokens = [*(msgspec.json.decode(kept) if kept else ()), unpack(body)]
    ctx.set(_TOKENS, msgspec.json.encode(tokens), serde=BYTES)
    return pack(None)


async def unkey(ctx: Any, _: bytes) -> bytes:
    """Its key is its own no more."""
    at = await alone(ctx)
    if at.promise is not None:
        at.put(at.promise._replace(key=None, key_expires_at=None))
        at.save()
    return pack(None)


async def find(ctx: Any, _: bytes) -> bytes:
    return pack((await alone(ctx)).promise)


# -- what time does ----------------------------------------------------------------------------


async def tick(ctx: Any, body: bytes) -> bytes:
    """`now`: it is late, if it was due by then."""
    await _ripen(ctx, Due(unpack(body), LATE, b""))
    return pack(None)


async def ripen(ctx: Any, body: bytes) -> bytes:
    """`Due`, of this promise only. Answers `[Ripe, []]`."""
    return pack([await _ripen(ctx, unpack(body)), []])


async def _ripen(ctx: Any, due: Due) -> Any:
    at = await alone(ctx)
    ripe = MemoryTidying(at.kept).answers()[Due](due)
    at.save()
    if ripe.alone:
        send(ctx, BELL, ALL, "ring", None)
    return ripe


async def forget(ctx: Any, body: bytes) -> bytes:
    """`now`: nothing is left of it, if its time is over by then. Answers whether it was."""
    until, tokens = await ctx.get(UNTIL, serde=BYTES), await ctx.get(_TOKENS, serde=BYTES)
    if until is None or int(until, 16) > unpack(body):
        return pack(False)
    for token in msgspec.json.decode(tokens) if tokens else ():
        send(ctx, TOKENS, token, "forget", int(id_of(ctx), 16))
    ctx.clear_all()
    return pack(True)


def promise_object() -> Any:
    made = new_object(SERVICE)
    for each in (
        make, registered, abandon, settle, add_token, unkey, tick, ripen, forget,
    ):  # fmt: skip
        add(made, each.__name__, each)
    add(made, "find", find, kind="shared")
    return made
