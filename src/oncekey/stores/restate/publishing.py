"""The key of an event, as its `oncekey.Request` has it: spent at once, and until the event is past
its time it says which one that is. So whoever finds the key spent makes sure that it is kept."""

from __future__ import annotations

from typing import Any

from oncekey.core.model import Link, Record
from oncekey.core.ports import Insert
from oncekey.core.work import Event
from oncekey.stores.memory.claims import Claims
from oncekey.stores.memory.keys import Keys
from oncekey.stores.restate import request
from oncekey.stores.restate.event import lifetime_of
from oncekey.stores.restate.objects import BYTES, add
from oncekey.stores.restate.values import pack, unpack

_PUBLISHED = "published"


class OneClaim(Claims):
    """The table of claims, as a single key sees it."""

    def __init__(self, record: Record | None) -> None:
        super().__init__()
        self.record = record

    def at(self, digest: bytes) -> Record | None:
        return self.record

    def of(self, number: int) -> Record | None:
        return self.record if self.record is not None and self.record.id == number else None

    def add(self, insert: Insert, owner: int, link: Link | None = None) -> bool:
        return self.put(request.record_of(insert, owner)._replace(link=link))

    def put(self, record: Record) -> bool:
        self.record = record
        return True

    def forget(self, number: int) -> bool:
        found = self.of(number) is not None
        self.record = None if found else self.record
        return found


async def publish(ctx: Any, body: bytes) -> bytes:
    """`[event, insert]`: spend the key on the event. True, or `[record, event]` of who has it."""
    event, insert = unpack(body)
    record = await request.load(ctx)
    claims = OneClaim(record)
    taken = Keys(claims).spend(insert)
    if isinstance(taken, Record):
        first = await _published(ctx, taken.id)
        past = first is not None and first.expires_at <= insert.created_at
        return pack([taken, None if past else first])
    if claims.record is not record:
        request.keep(ctx, record, claims.record)
        ctx.set(_PUBLISHED, pack(event), serde=BYTES)
        after = lifetime_of(event)
        told = pack(event.id)
        ctx.generic_send(request.SERVICE, "published", told, key=ctx.key(), send_delay=after)
    return pack(True)


async def unpublish(ctx: Any, body: bytes) -> bytes:
    """The number of an event that cannot be kept: its key is free again."""
    number = unpack(body)
    record = await request.load(ctx)
    claims = OneClaim(record)
    if claims.forget(number):
        request.keep(ctx, record, None)
    return await published(ctx, body)


async def published(ctx: Any, body: bytes) -> bytes:
    """The number of an event of which nobody needs to know any more."""
    if await _published(ctx, unpack(body)) is not None:
        ctx.clear(_PUBLISHED)
    return pack(True)


async def _published(ctx: Any, number: int) -> Event | None:
    kept = await ctx.get(_PUBLISHED, serde=BYTES)
    event: Event | None = None if kept is None else unpack(kept)
    return event if event is not None and event.id == number else None


def add_publishing(to: Any) -> None:
    for each in (publish, unpublish, published):
        add(to, each.__name__, each)
