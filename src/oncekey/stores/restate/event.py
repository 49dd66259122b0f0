"""Events: `oncekey.Event` is one of them. `oncekey.Lookback` has those of a topic in their order,
for waits that look back; several objects share them, so that none of them is a bottleneck."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple
from zlib import crc32

from oncekey.core.work import Event
from oncekey.stores.restate.objects import BYTES, add, new_object
from oncekey.stores.restate.values import numbered, pack, unnumbered, unpack

SERVICE = "oncekey.Event"
LOOKBACK = "oncekey.Lookback"
EVENT = "event"
SHARES = 8
_COUNT = "count"
_LAST = (1 << 63) - 1
# What one object tells at a time, unless a single event is larger.
_PAGE_BYTES = 1 << 20


def lifetime_of(event: Event) -> timedelta:
    """Told by no clock but the publisher's: it ends as long after it came as that one says."""
    return timedelta(milliseconds=max(0, event.expires_at - event.created_at))


# -- one event ---------------------------------------------------------------------------------


async def _load(ctx: Any) -> Event | None:
    kept = await ctx.get(EVENT, serde=BYTES)
    return None if kept is None else unnumbered(kept)


async def keep(ctx: Any, body: bytes) -> bytes:
    """Whether it is kept; not when another event has its number."""
    event: Event = unpack(body)
    kept = await _load(ctx)
    if kept is not None:
        return pack(kept._replace(matched=False) == event)
    ctx.set(EVENT, numbered(event.id, event), serde=BYTES)
    ctx.generic_send(SERVICE, "forget", b"", key=ctx.key(), send_delay=lifetime_of(event))
    return pack(True)


async def count(ctx: Any, body: bytes) -> bytes:
    """It has settled so many waits more."""
    if await _load(ctx) is not None:
        ctx.set(_COUNT, pack(await _counted(ctx) + unpack(body)), serde=BYTES)
    return pack(True)


async def matched(ctx: Any, _: bytes) -> bytes:
    """Every wait it could fit has been looked at; answers how many it settled."""
    event = await _load(ctx)
    if event is None:
        return pack(0)
    if not event.matched:
        ctx.set(EVENT, numbered(event.id, event._replace(matched=True)), serde=BYTES)
    return pack(await _counted(ctx))


async def _counted(ctx: Any) -> int:
    kept = await ctx.get(_COUNT, serde=BYTES)
    return 0 if kept is None else int(unpack(kept))


async def find(ctx: Any, _: bytes) -> bytes:
    return pack(await _load(ctx))


async def forget(ctx: Any, _: bytes) -> bytes:
    ctx.clear_all()
    return pack(True)


def event_object() -> Any:
    made = new_object(SERVICE)
    for each in (keep, count, matched, forget):
        add(made, each.__name__, each)
    add(made, "find", find, kind="shared")
    return made


# -- the events of a topic ---------------------------------------------------------------------


class _Line(NamedTuple):
    """What the name of a state tells, so that a page is chosen without a look at the events."""

    id: int
    created_at: int
    size: int
    name: str


def name_of(event: Event) -> str:
    """With a checksum: an event that is refused because of its number replaces no other."""
    packed = pack(event)
    return f"e:{event.id:016x}.{event.created_at:x}.{len(packed):x}.{crc32(packed):x}"


def _line_of(name: str) -> _Line:
    number, created_at, size, _ = name[len("e:") :].split(".")
    return _Line(int(number, 16), int(created_at, 16), int(size, 16), name)


def share_of(topic: str, number: int) -> str:
    """The id of the object that has the event of a number, in the topic of an id."""
    return f"{topic}.{number % SHARES:x}"


async def put(ctx: Any, body: bytes) -> bytes:
    event: Event = unpack(body)
    name = name_of(event)
    ctx.set(name, body, serde=BYTES)
    delay = lifetime_of(event)
    ctx.generic_send(LOOKBACK, "drop", pack(name), key=ctx.key(), send_delay=delay)
    return pack(True)


async def drop(ctx: Any, body: bytes) -> bytes:
    ctx.clear(unpack(body))
    return pack(True)


async def events(ctx: Any, body: bytes) -> bytes:
    """`[since, after, limit]`: events, oldest first, and up to which number these are all. Whether
    they are matched is not known here."""
    since, after, limit = unpack(body)
    lines = sorted(map(_line_of, await ctx.state_keys()))
    fitting = [line for line in lines if line.id > after and line.created_at >= since]
    page = _page(fitting, limit)
    # All are asked for before the first is waited for: they come in one exchange.
    asked = [ctx.get(line.name, serde=BYTES) for line in page]
    kept = [await each for each in asked]
    known = page[-1].id if len(page) < len(fitting) else _LAST
    return pack([[unpack(each) for each in kept if each is not None], known])


def _page(lines: list[_Line], limit: int) -> list[_Line]:
    size = 0
    for place, line in enumerate(lines[:limit]):
        size += line.size
        if place and size > _PAGE_BYTES:
            return lines[:place]
    return lines[:limit]


def lookback_object() -> Any:
    made = new_object(LOOKBACK)
    for each in (put, drop):
        add(made, each.__name__, each, lazy=True)
    add(made, "events", events, kind="shared", lazy=True)
    return made
