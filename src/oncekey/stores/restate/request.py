"""The object `oncekey.Request`, one for each key in its scope: whose it is, and how it ended."""

from __future__ import annotations

from typing import Any, NamedTuple

from oncekey.core.model import Record
from oncekey.core.ports import (
    Abandon,
    Gone,
    Held,
    Insert,
    Release,
    Replace,
    Settle,
    Take,
)
from oncekey.stores.restate.objects import BYTES, add
from oncekey.stores.restate.record import (
    RECORD,
    WHOLE,
    is_apart,
    is_large,
    unwritten,
    written,
)
from oncekey.stores.restate.values import pack, unpack
from oncekey.stores.restate.work.letting_go import let_go

SERVICE = "oncekey.Request"
NOBODY = 0


class Change(NamedTuple):
    """What becomes of the record (None: forgotten), and the answer."""

    record: Record | None
    answer: Any


def change_of(record: Record | None, request: Any, owner: int, gone: int = NOBODY) -> Change:
    """What a request does to the record of its key. A record that is answered is as it was.

    `gone` is an owner of which whoever asks knows that it lives no more.
    """
    match request:
        case Insert():
            return _insert(record, request, owner)
        case Replace(old_id, old_fence, insert):
            old = record is not None and (record.id, record.fence) == (old_id, old_fence)
            expired = old and record is not None and _is_over(record, insert.created_at, gone)
            return _insert(None if expired else record, insert, owner)
        case Take(number, _, fence):
            return _take(record, number, fence, owner, gone)
        case Settle():
            return _settle(record, request)
        case Release(number, fence):
            held = _is_unsettled(record, number, fence)
            return Change(None if held else record, held)
        case Abandon(number, fence):
            if record is None or not _is_unsettled(record, number, fence):
                return Change(record, False)
            if record.owner not in {owner, NOBODY}:
                return Change(record, False)
            return Change(record._replace(owner=NOBODY), True)
        case _:
            raise TypeError(f"{type(request).__name__} is not for one key")


def _insert(record: Record | None, insert: Insert, owner: int) -> Change:
    if record is None:
        return Change(record_of(insert, owner), Held(1))
    ours = record.id == insert.id and record.owner == owner and record.outcome is None
    return Change(record, Held(record.fence) if ours else record)


def _take(record: Record | None, number: int, fence: int, owner: int, gone: int) -> Change:
    if record is None:
        return Change(None, Gone())
    if not _is_unsettled(record, number, fence) or record.owner not in {NOBODY, gone}:
        return Change(record, record)
    return Change(record._replace(owner=owner, fence=fence + 1), Held(fence + 1))


def _settle(record: Record | None, settle: Settle) -> Change:
    if record is None or (record.id, record.fence) != (settle.id, settle.fence):
        return Change(record, False)
    if record.outcome is not None:
        return Change(record, True)
    settled = record._replace(
        completed_at=settle.completed_at, expires_at=settle.expires_at, outcome=settle.outcome
    )
    return Change(settled, True)


def record_of(insert: Insert, owner: int) -> Record:
    operation = insert.operation
    return Record(
        insert.id,
        operation.ref,
        operation.fingerprint,
        owner,
        1,
        operation.request_id,
        operation.retention,
        insert.created_at,
        insert.expires_at,
    )


def _is_unsettled(record: Record | None, number: int, fence: int) -> bool:
    found = record is not None and (record.id, record.fence) == (number, fence)
    return found and record is not None and record.outcome is None


def _is_over(record: Record, now: int, gone: int) -> bool:
    held = record.outcome is None and record.owner not in {NOBODY, gone}
    return not held and record.expires_at <= now


# -- the handlers ------------------------------------------------------------------------------


async def load(ctx: Any) -> Record | None:
    kept = await ctx.get(RECORD, serde=BYTES)
    if kept is None:
        return None
    record = unwritten(kept)
    return await _whole(ctx, record.id) or record if is_apart(kept) else record


async def _whole(ctx: Any, number: int) -> Record | None:
    """The record of that number, if it is the one that is kept apart."""
    kept = await ctx.get(WHOLE, serde=BYTES)
    record: Record | None = None if kept is None else unpack(kept)
    return record if record is not None and record.id == number else None


def keep(ctx: Any, before: Record | None, after: Record | None) -> None:
    """Write what has changed. A node may die between two states that are written: whatever is said
    of a record, the whole of it is there by then."""
    if after is before:
        return
    if is_large(after):
        ctx.set(WHOLE, pack(after), serde=BYTES)
    if after is None:
        ctx.clear(RECORD)
    else:
        ctx.set(RECORD, written(after), serde=BYTES)
    if is_large(before) and not is_large(after):
        ctx.clear(WHOLE)


async def ask(ctx: Any, body: bytes) -> bytes:
    """`[request, owner, gone]`: what the ledger asks about one key."""
    request, owner, gone = unpack(body)
    record = await load(ctx)
    change = change_of(record, request, owner, gone)
    keep(ctx, record, change.record)
    return pack(change.answer)


async def peek(ctx: Any, _: bytes) -> bytes:
    return pack(await load(ctx))


async def under(ctx: Any, body: bytes) -> bytes:
    """`number`: what is written under it, as a whole, also by a call that has not ended."""
    number = unpack(body)
    record = await load(ctx)
    found = record is not None and record.id == number
    return pack(record if found else await _whole(ctx, number))


async def purge(ctx: Any, _: bytes) -> bytes:
    """The fingerprint of what was forgotten, if there was something."""
    record = await load(ctx)
    let_go(ctx, record)
    keep(ctx, record, None)
    return pack(None if record is None else record.fingerprint.hex())


async def sweep(ctx: Any, body: bytes) -> bytes:
    """`[number, fence, now, gone]`: forget that record, if it is still the one and past its
    time."""
    number, fence, now, gone = unpack(body)
    record = await load(ctx)
    is_it = record is not None and (record.id, record.fence) == (number, fence)
    if not is_it or record is None or not _is_over(record, now, gone):
        return pack(False)
    keep(ctx, record, None)
    return pack(True)


def add_handlers(to: Any) -> None:
    add(to, "ask", ask, brief=True)
    add(to, "peek", peek, kind="shared", brief=True)
    add(to, "under", under, kind="shared", brief=True)
    add(to, "purge", purge)
    add(to, "sweep", sweep, brief=True)
