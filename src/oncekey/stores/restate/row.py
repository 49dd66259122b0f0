"""The object `oncekey.Row`, one for each row of a table: what the oracle says of a table of which
there is no other row. Lists are SQL over what all of them keep."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from oncekey.stores.restate.columns import joined, last
from oncekey.stores.restate.link import Link, text
from oncekey.stores.restate.objects import BYTES, add, new_object
from oncekey.stores.restate.values import pack, unpack

SERVICE = "oncekey.Row"
Answers = dict[type, Callable[[Any], Any]]
Room = dict[type, Callable[[Any], Awaitable[Any]]]
_ROW, _HELD = "row", "held"


class Table(NamedTuple):
    """`oracle(kept)` answers requests about the rows in `kept`, which it changes."""

    name: str
    oracle: Callable[[dict[Any, Any]], Answers]
    changes: Sequence[type]
    """What is asked of one row, and may change it."""
    id_of: Callable[[Any], Any]
    """By which the oracle keeps a row."""
    columns: Callable[[Any], tuple[str, ...]]
    """What lists look at. The first sorts the rows and is different for each."""


class Rows:
    """The rows of a table, as a process asks for them."""

    def __init__(self, link: Link, table: Table) -> None:
        self._link = link
        self._table = table

    async def ask(self, id_: str, request: Any) -> Any:
        return await self._link.call(SERVICE, self._key(id_), "ask", request)

    async def read(self, id_: str) -> Any:
        return await self._link.call(SERVICE, self._key(id_), "read", None)

    async def list(self, *conditions: str, newest_first: bool = True, limit: int) -> list[Any]:
        mine = f"service_key LIKE {text(self._link.key(self._key('%')))}"
        rows = await self._link.states(
            SERVICE,
            _ROW,
            where=" AND ".join([mine, *conditions]),
            order="value_utf8 DESC" if newest_first else "value_utf8",
            limit=limit,
        )
        return [unpack(last(value)) for _, _, value in rows]

    def _key(self, id_: str) -> str:
        return f"{self._table.name}.{id_}"


async def held(link: Link, name: str, value: Any) -> Any:
    """What is held under a name that is given once: `value`, unless another was there before."""
    return await link.call(SERVICE, name, "hold", value)


async def peek_held(link: Link, name: str) -> Any:
    return await link.call(SERVICE, name, "held", None)


def row_object(tables: Sequence[Table]) -> Any:
    table_of = {kind: table for table in tables for kind in table.changes}

    async def ask(ctx: Any, body: bytes) -> bytes:
        request = unpack(body)
        table = table_of[type(request)]
        row = await _load(ctx)
        kept = {} if row is None else {table.id_of(row): row}
        answer = table.oracle(kept)[type(request)](request)
        after = next(iter(kept.values()), None)
        if after is None and row is not None:
            ctx.clear(_ROW)
        elif after is not None and after != row:
            ctx.set(_ROW, joined(*table.columns(after)) + pack(after), serde=BYTES)
        return pack(answer)

    made = new_object(SERVICE)
    add(made, "ask", ask)
    add(made, "read", _read, kind="shared")
    add(made, "hold", _hold)
    add(made, "held", _held, kind="shared")
    return made


async def _load(ctx: Any) -> Any:
    kept = await ctx.get(_ROW, serde=BYTES)
    return None if kept is None else unpack(last(kept))


async def _read(ctx: Any, _: bytes) -> bytes:
    return pack(await _load(ctx))


async def _hold(ctx: Any, body: bytes) -> bytes:
    there: bytes | None = await ctx.get(_HELD, serde=BYTES)
    if there is None:
        ctx.set(_HELD, body, serde=BYTES)
    return body if there is None else there


async def _held(ctx: Any, _: bytes) -> bytes:
    there: bytes | None = await ctx.get(_HELD, serde=BYTES)
    return pack(None) if there is None else there
