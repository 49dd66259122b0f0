"""The room of counting, by SQL over what objects keep. Requests that are being forwarded have no
record before their end, and are not counted."""

from __future__ import annotations

from typing import Any

from oncekey.core.census import Census, Counted
from oncekey.core.execution import PromiseKind, PromiseState, Sort, Status
from oncekey.core.work import ENGINE
from oncekey.stores.restate.claims import Room
from oncekey.stores.restate.link import Link, text
from oncekey.stores.restate.listing import EXECUTIONS, PROMISES, like_execution, like_promise
from oncekey.stores.restate.record import HOLDER, RECORD, SETTLED, owner_text, unwritten
from oncekey.stores.restate.request import SERVICE
from oncekey.stores.restate.values import unnumbered

_OPEN = f"{HOLDER} NOT IN ('{SETTLED}', '{owner_text(ENGINE)}')"
_PROMISE = PromiseKind.PROMISE


class Counting:
    def __init__(self, link: Link) -> None:
        self._link = link

    def answers(self) -> Room:
        return {Census: self._count}

    async def _count(self, _: Census) -> Counted:
        records = f"service_name = '{SERVICE}' AND key = '{RECORD}' AND {_OPEN}"
        claims = await self._number(records, {"all": "true"})
        executions = await self._number(
            EXECUTIONS,
            {
                f"{sort.name}_{status.name}": like_execution(sort=sort, status=status)
                for sort in Sort
                for status in Status
            },
        )
        promises = await self._number(
            PROMISES,
            {state.name: like_promise(kind=_PROMISE, state=state) for state in PromiseState},
        )
        claim = await self._oldest(records)
        waiting = await self._oldest(f"{EXECUTIONS} AND {like_execution(status=Status.WAITING)}")
        pending = await self._oldest(
            f"{PROMISES} AND {like_promise(kind=_PROMISE, state=PromiseState.PENDING)}"
        )
        return Counted(
            claims["all"],
            None if claim is None else unwritten(claim).created_at,
            {status: executions[f"WORKFLOW_{status.name}"] for status in Status},
            {status: executions[f"TASK_{status.name}"] for status in Status},
            {state: promises[state.name] for state in PromiseState},
            None if waiting is None else unnumbered(waiting).created_at,
            None if pending is None else unnumbered(pending).created_at,
        )

    async def _number(self, where: str, conditions: dict[str, str]) -> dict[str, int]:
        """How many there are of what each condition holds for."""
        counts = ", ".join(
            f'count(*) FILTER (WHERE {condition}) AS "{name}"'
            for name, condition in conditions.items()
        )
        rows = await self._query(counts, where)
        return {name: int(rows[0][name]) for name in conditions}

    async def _oldest(self, where: str) -> bytes | None:
        rows = await self._query("value_utf8", f"{where} ORDER BY value_utf8 LIMIT 1")
        return rows[0]["value_utf8"].encode() if rows else None

    async def _query(self, what: str, where: str) -> list[dict[str, Any]]:
        mine = f"service_key LIKE {text(self._link.space + '.%')}"
        sql = f"SELECT {what} FROM state WHERE {mine} AND {where}"  # noqa: S608 - see `text`
        return await self._link.admin.query(sql)
