"""The room of the log of deliveries, and the object `oncekey.Lines` that keeps lines which were
written together."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from oncekey.core.deliveries import KeepDeliveries, ListDeliveries, LoggedDelivery
from oncekey.core.looking import Looked
from oncekey.stores.restate.columns import contains, is_same, joined, last, piece
from oncekey.stores.restate.link import Link
from oncekey.stores.restate.objects import BYTES, add, new_object
from oncekey.stores.restate.row import Room
from oncekey.stores.restate.turns import in_turn
from oncekey.stores.restate.values import pack, unpack

SERVICE = "oncekey.Lines"
_ALL = "%"
# Behind the number, which takes 16 characters as well.
_EXPIRY = piece(17, 16)
_WEBHOOK = 2
_LAST = (1 << 63) - 1


class Deliveries:
    def __init__(self, link: Link) -> None:
        self._link = link

    def answers(self) -> Room:
        return {KeepDeliveries: self._keep, ListDeliveries: self._list}

    async def _keep(self, keep: KeepDeliveries) -> bool:
        if keep.deliveries:
            first = min(line.id for line in keep.deliveries)
            await self._link.call(SERVICE, f"{first:016x}", "keep", keep)
        return True

    async def _list(self, query: ListDeliveries) -> Looked[LoggedDelivery]:
        """What the columns do not tell is looked for in pages."""
        found: Looked[LoggedDelivery] = Looked()
        before = _LAST if query.before is None else query.before
        while (missing := query.limit - len(found)) > 0:
            conditions = [f"value_utf8 < '{max(0, before):016x}'", *_conditions(query)]
            rows = await self._link.states(
                SERVICE,
                _ALL,
                where=" AND ".join(conditions),
                order="value_utf8 DESC",
                limit=missing,
            )
            page: list[LoggedDelivery] = [unpack(last(value)) for _, _, value in rows]
            found += [each for each in page if _fits(each, query)]
            if len(page) < missing:
                break
            before = page[-1].id
        return found

    async def count_expired(self, now: int) -> int:
        return await self._link.count(SERVICE, _ALL, where=_is_expired(now))

    async def sweep(self, now: int, batch: int) -> int:
        rows = await self._link.states(SERVICE, _ALL, where=_is_expired(now), limit=batch)
        expired = defaultdict(list)
        for id_, name, _ in rows:
            expired[id_].append(name)
        dropped = await in_turn(
            [self._link.call(SERVICE, id_, "drop", names) for id_, names in expired.items()]
        )
        return sum(dropped)


def _conditions(query: ListDeliveries) -> list[str]:
    """SQL for what it looks like; text may only resemble it."""
    found = [] if query.webhook is None else [is_same(_WEBHOOK, query.webhook)]
    texts = (query.verdict, query.identifier)
    found += [contains(each) for each in texts if each is not None]
    if query.operation is not None:
        found.append(f"value_utf8 LIKE '%,{query.operation:d},%'")
    return found


def _fits(each: LoggedDelivery, query: ListDeliveries) -> bool:
    return (
        query.verdict in {None, each.verdict}
        and query.identifier in {None, each.identifier}
        and query.operation in {None, each.operation}
    )


def _is_expired(now: int) -> str:
    return f"{_EXPIRY} <= '{max(0, now):016x}'"


async def keep(ctx: Any, body: bytes) -> bytes:
    """A line that is there stays as it is."""
    lines: KeepDeliveries = unpack(body)
    for line in lines.deliveries:
        name = f"{line.id:016x}"
        if await ctx.get(name, serde=BYTES) is None:
            columns = joined(f"{name}{line.expires_at:016x}", line.webhook)
            ctx.set(name, columns + pack(line), serde=BYTES)
    return pack(True)


async def drop(ctx: Any, body: bytes) -> bytes:
    """How many there were of the lines of these names."""
    names = [name for name in unpack(body) if await ctx.get(name, serde=BYTES) is not None]
    for name in names:
        ctx.clear(name)
    return pack(len(names))


def lines_object() -> Any:
    made = new_object(SERVICE)
    add(made, "keep", keep)
    add(made, "drop", drop)
    return made
