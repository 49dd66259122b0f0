"""Handlers of `oncekey.Request` for keys that durable work has: no process's death lets them
lapse. A key of a promise also keeps what came before it."""

from __future__ import annotations

from typing import Any

from oncekey.core.execution import promise_place_of
from oncekey.core.model import Link, Record
from oncekey.core.work import ENGINE
from oncekey.stores.restate.asked import Claimed, Claiming, Parking, Told
from oncekey.stores.restate.objects import BYTES, add
from oncekey.stores.restate.request import keep, load, record_of
from oncekey.stores.restate.values import numbered, pack, unnumbered, unpack
from oncekey.stores.restate.work.calls import id_of, nonce_in, send
from oncekey.stores.restate.work.following import EXECUTIONS, PROMISES, REQUESTS
from oncekey.stores.restate.work.letting_go import let_go

PARKED, UNTIL = "parked", "until"
_STILL_KNOWN = 60_000


async def claim(ctx: Any, body: bytes) -> bytes:
    """`Claiming`; answers `Claimed`."""
    asked: Claiming = unpack(body)
    insert, now = asked.insert, asked.insert.created_at
    record = await load(ctx)
    if record is not None and _is_own(record, asked):
        if record.link is None and asked.link is not None:
            keep(ctx, record, record._replace(link=asked.link))
        return pack(Claimed(None, await _parked_for(ctx, asked)))
    if record is not None and record.id != asked.instead and not _is_past(record, now):
        return pack(Claimed(record))
    let_go(ctx, record)
    made = record_of(insert, ENGINE)._replace(link=asked.link)
    if asked.outcome is not None:
        made = made._replace(completed_at=now, outcome=asked.outcome)
    keep(ctx, record, made)
    _remember(ctx, made)
    nonce = nonce_in(ctx)
    if asked.creation is not None:
        send(ctx, EXECUTIONS, f"{insert.id:016x}", "create", asked.creation, nonce=nonce)
    return pack(Claimed(None, await _parked_for(ctx, asked), nonce))


def _is_own(record: Record, asked: Claiming) -> bool:
    """What it was claimed for before is not begun once more when it is over."""
    same = record.id == asked.insert.id and record.owner == ENGINE
    return same and (record.outcome is None or asked.outcome is not None)


def _remember(ctx: Any, record: Record) -> None:
    """A key of a promise ends with its time, whatever became of the promise. For a while whoever
    comes too late is told so."""
    if record.link is None or record.link.kind != "promise" or record.outcome is not None:
        return
    ctx.set(UNTIL, f"{record.expires_at:016x}".encode(), serde=BYTES)
    at = record.expires_at + _STILL_KNOWN
    send(ctx, REQUESTS, id_of(ctx), "expire", record.expires_at, at=at)


def _is_past(record: Record, now: int) -> bool:
    """Whether the key can be used anew. What still runs under a key has it however long."""
    runs = record.outcome is None and record.link is not None and record.link.kind != "promise"
    return record.expires_at <= now and not runs


async def settle(ctx: Any, body: bytes) -> bytes:
    """A `Record`: what has its number is over as it says."""
    settled: Record = unpack(body)
    record = await load(ctx)
    if record is None or record.id != settled.id or record.outcome is not None:
        return pack(False)
    over = record._replace(
        completed_at=settled.completed_at,
        expires_at=settled.expires_at,
        outcome=settled.outcome,
    )
    keep(ctx, record, over)
    return pack(True)


async def forget(ctx: Any, body: bytes) -> bytes:
    """`number`: whoever has it gives the key back."""
    record = await load(ctx)
    if record is None or record.id != unpack(body):
        return pack(False)
    keep(ctx, record, None)
    ctx.clear(UNTIL)
    return pack(True)


async def link(ctx: Any, body: bytes) -> bytes:
    """`[number, promise]`: the request was for that promise in the end."""
    number, promise = unpack(body)
    record = await load(ctx)
    if record is None or record.id != number:
        return pack(False)
    keep(ctx, record, record._replace(link=Link("promise", promise)))
    return pack(True)


async def expire(ctx: Any, body: bytes) -> bytes:
    """`now`: forget the key of a promise whose time is over by then."""
    now = unpack(body)
    record, until = await load(ctx), await ctx.get(UNTIL, serde=BYTES)
    if until is None or int(until, 16) > now:
        return pack(False)
    ctx.clear(UNTIL)
    is_promise = record is not None and record.link is not None and record.outcome is None
    if not is_promise or record is None or record.expires_at > now:
        return pack(False)
    let_go(ctx, record)
    keep(ctx, record, None)
    return pack(True)


# -- what came before its promise --------------------------------------------------------------


async def _parked_for(ctx: Any, asked: Claiming) -> Parking | None:
    """What is to be delivered to a promise that has the key now. Once one has been told of it, it
    is for no other."""
    kept = await ctx.get(PARKED, serde=BYTES)
    if kept is None or asked.link is None or asked.link.kind != "promise" or asked.outcome:
        return None
    parked: Parking = unnumbered(kept)
    promise, now = asked.insert.id, asked.insert.created_at
    if parked.taken_by == promise:
        return parked
    if parked.taken_by or parked.expires_at <= now:
        ctx.clear(PARKED)
        return None
    return _take(ctx, parked, promise, asked.link, now)


def _take(ctx: Any, parked: Parking, promise: int, link: Link, now: int) -> Parking:
    """It is on its way from now on, whatever becomes of whoever asked."""
    taken = parked._replace(taken_by=promise)
    ctx.set(PARKED, numbered(taken.expires_at, taken), serde=BYTES)
    if taken.digest is not None:
        # The record of the request says for which promise it was in the end.
        send(ctx, REQUESTS, taken.digest.hex(), "link", [taken.request, link.id])
    told, place = told_by(taken, promise, now), promise_place_of(link.id)
    if place is not None and place.execution is not None:
        send(ctx, EXECUTIONS, f"{place.execution:016x}", "tell", told)
    else:
        send(ctx, PROMISES, f"{promise:016x}", "registered", told)
    return taken


def told_by(parked: Parking, promise: int, now: int) -> Told:
    return Told(promise, parked.state, parked.body, parked.settled_by, now)


async def deliver(ctx: Any, body: bytes) -> bytes:
    """`[number, its public id, now]`: what came before a promise that is not registered yet, and is
    its own unless another promise has the key. Answers `Parking` or None."""
    promise, public_id, now = unpack(body)
    record, kept = await load(ctx), await ctx.get(PARKED, serde=BYTES)
    if kept is None or (record is not None and record.id != promise and not _is_past(record, now)):
        return pack(None)
    parked: Parking = unnumbered(kept)
    if parked.taken_by or parked.expires_at <= now:
        return pack(parked if parked.taken_by == promise else None)
    return pack(_take(ctx, parked, promise, Link("promise", public_id), now))


async def park(ctx: Any, body: bytes) -> bytes:
    """`[Parking, now, number]`: keep it, unless another promise than that has the key, or something
    came earlier. Answers `[record or None, until when it is kept, whether it was before]`."""
    parking, now, gone = unpack(body)
    record = await load(ctx)
    holds = record is not None and record.link is not None and record.link.kind == "promise"
    if record is not None and holds and record.id != gone:
        return pack([record, 0, False])
    kept = await ctx.get(PARKED, serde=BYTES)
    early: Parking | None = None if kept is None else unnumbered(kept)
    if early is not None and not early.taken_by and early.expires_at > now:
        return pack([None, early.expires_at, True])
    ctx.set(PARKED, numbered(parking.expires_at, parking), serde=BYTES)
    send(ctx, REQUESTS, id_of(ctx), "unpark", parking.expires_at, at=parking.expires_at)
    return pack([None, parking.expires_at, False])


async def unpark(ctx: Any, body: bytes) -> bytes:
    """`now`: forget what was parked, if its time is over by then. Answers whether it was."""
    kept = await ctx.get(PARKED, serde=BYTES)
    parked: Parking | None = None if kept is None else unnumbered(kept)
    if parked is None or parked.expires_at > unpack(body):
        return pack(False)
    ctx.clear(PARKED)
    return pack(not parked.taken_by)


def add_key_handlers(to: Any) -> None:
    for each in (claim, settle, forget, link, expire, deliver, park, unpark):
        add(to, each.__name__, each)
