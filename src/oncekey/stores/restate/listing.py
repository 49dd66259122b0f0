"""The room of lists: executions, promises and events in pages, by SQL over what objects keep.

What is asked for is looked for in the text that is kept, so that a page is one query; what comes
is looked at once more, since text may only resemble it. Each query looks at everything there is, so
that nothing is gained by looking at some of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from oncekey.core.execution import (
    Execution,
    Promise,
    PromiseKind,
    PromiseState,
    Sort,
    Status,
)
from oncekey.core.looking import Looked
from oncekey.core.work import Event, ListEvents, ListExecutions, ListPromises, Unmatched
from oncekey.stores.restate import event as kept
from oncekey.stores.restate.claims import Room
from oncekey.stores.restate.link import Link, text
from oncekey.stores.restate.values import unnumbered

T = TypeVar("T")

EXECUTIONS = "service_name = 'oncekey.Execution' AND key = 'execution'"
_OF_EXECUTIONS = "service_name = 'oncekey.Execution' AND key LIKE 'p:%'"
_ALONE = "service_name = 'oncekey.Promise' AND key = 'promise'"
PROMISES = f"(({_OF_EXECUTIONS}) OR ({_ALONE}))"
_EVENTS = f"service_name = '{kept.SERVICE}' AND key = '{kept.EVENT}'"
_LAST = (1 << 63) - 1
_ANY_TEXT = '"%"'
_encode = msgspec.json.Encoder().encode


class Listing:
    def __init__(self, link: Link) -> None:
        self._link = link

    def answers(self) -> Room:
        return {
            ListExecutions: self._executions,
            ListPromises: self._promises,
            ListEvents: self._events,
            Unmatched: self._unmatched,
        }

    async def _executions(self, asked: ListExecutions) -> Looked[Execution]:
        tenant, status, name, sort, before, limit, _ = asked

        def fits(found: Execution) -> bool:
            return (
                tenant in {None, found.tenant}
                and status in {None, found.status}
                and name in {None, found.name}
                and sort in {None, found.sort}
            )

        like = like_execution(tenant, sort, name, status)
        return await self._newest(f"{EXECUTIONS} AND {like}", fits, limit, before)

    async def _promises(self, asked: ListPromises) -> Looked[Promise]:
        """What only time or code settles is left out, unless asked for by kind or by execution."""
        tenant, state, kind, execution, before, limit, key, _ = asked
        if kind is None and execution is None:
            kind = PromiseKind.PROMISE

        def fits(found: Promise) -> bool:
            return (
                tenant in {None, found.tenant}
                and state in {None, found.state}
                and kind in {None, found.kind}
                and execution in {None, found.execution}
                and key in {None, found.key}
            )

        where = PROMISES
        if execution is not None:
            object_key = text(self._link.key(f"{execution:016x}"))
            where = f"{_OF_EXECUTIONS} AND service_key = {object_key}"
        like = like_promise(tenant, kind, state)
        if key is not None:
            like += f" AND value_utf8 LIKE {text(f'%,{_quoted(key)},%')}"
        return await self._newest(f"{where} AND {like}", fits, limit, before)

    async def _events(self, asked: ListEvents) -> Looked[Event]:
        tenant, topic, limit, before, _ = asked

        def fits(found: Event) -> bool:
            return tenant in {None, found.tenant} and topic in {None, found.topic}

        like = _like("Event", _text(tenant), _text(topic))
        return await self._newest(f"{_EVENTS} AND {like}", fits, limit, before)

    async def _unmatched(self, asked: Unmatched) -> list[Event]:
        """Oldest first."""
        # The last of what is kept of an event is whether it is matched.
        where = f"{_EVENTS} AND value_utf8 LIKE '%,false]]'"

        def fits(found: Event) -> bool:
            return not found.matched and found.created_at < asked.before

        def bound(last: int) -> str:
            return f"value_utf8 >= '{last + 1:016x}' ORDER BY value_utf8"

        return await self._paged(where, fits, asked.limit, bound, 0)

    # -- pages ---------------------------------------------------------------------------

    async def _newest(
        self, where: str, fits: Callable[[T], bool], limit: int, before: int | None = None
    ) -> Looked[T]:
        def bound(last: int) -> str:
            return f"value_utf8 < '{last:016x}' ORDER BY value_utf8 DESC"

        start = _LAST if before is None else before
        return Looked(await self._paged(where, fits, limit, bound, start))

    async def _paged(
        self,
        where: str,
        fits: Callable[[T], bool],
        limit: int,
        bound: Callable[[int], str],
        start: int,
    ) -> list[T]:
        found: list[T] = []
        while (missing := limit - len(found)) > 0:
            rows = await self._rows(f"{where} AND {bound(max(0, start))} LIMIT {missing}")
            page: list[Any] = [unnumbered(row) for row in rows]
            found += filter(fits, page)
            if len(page) < missing:
                break
            start = page[-1].id
        return found

    async def _rows(self, condition: str) -> list[bytes]:
        mine = f"service_key LIKE {text(self._link.space + '.%')}"
        sql = f"SELECT value_utf8 FROM state WHERE {mine} AND {condition}"  # noqa: S608 - see `text`
        return [row["value_utf8"].encode() for row in await self._link.admin.query(sql)]


def like_execution(
    tenant: str | None = None,
    sort: Sort | None = None,
    name: str | None = None,
    status: Status | None = None,
) -> str:
    """SQL for: it looks like one of these."""
    return _like("Execution", _text(tenant), _digit(sort), _text(name), _ANY_TEXT, _digit(status))


def like_promise(
    tenant: str | None = None,
    kind: PromiseKind | None = None,
    state: PromiseState | None = None,
) -> str:
    return _like("Promise", _text(tenant), _digit(kind), _ANY_TEXT, _digit(state))


def _like(kind: str, *fields: str) -> str:
    """SQL for: the first of what is kept of this kind, after its number, is like this."""
    behind = "".join(f"{each}," for each in fields)
    return f"value_utf8 LIKE {text(f'%[{_quoted(kind)},[%,{behind}%')}"


def _digit(value: int | None) -> str:
    return "_" if value is None else str(int(value))


def _text(value: str | None) -> str:
    return _ANY_TEXT if value is None else _quoted(value)


def _quoted(value: str) -> str:
    """As JSON has it, in a pattern."""
    written = _encode(value).decode()
    for special in "\\%_":
        written = written.replace(special, f"\\{special}")
    return written
