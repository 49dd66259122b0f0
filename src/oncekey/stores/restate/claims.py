"""The room of claims: what the ledger asks about keys, put to the objects that have them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from oncekey.core.model import Record
from oncekey.core.ports import (
    Abandon,
    Answer,
    Found,
    Held,
    Insert,
    Peek,
    Purge,
    Query,
    Release,
    Replace,
    Settle,
    Take,
)
from oncekey.stores.restate.life import Life
from oncekey.stores.restate.link import Link
from oncekey.stores.restate.request import RECORD, SERVICE
from oncekey.stores.restate.values import unnumbered

Room = dict[type, Callable[[Any], Awaitable[Any]]]
_PAGE = 500


class Claims:
    def __init__(self, link: Link, life: Life) -> None:
        self._link = link
        self._life = life
        # Only the holder settles, and it knows of which key.
        self._held: dict[int, bytes] = {}

    def answers(self) -> Room:
        return {
            Insert: lambda insert: self._claim(insert.digest, insert.id, insert),
            Replace: lambda asked: self._claim(asked.insert.digest, asked.insert.id, asked),
            Take: lambda take: self._claim(take.digest, take.id, take),
            Settle: self._conclude,
            Release: self._conclude,
            Abandon: self._conclude,
            Peek: self._peek,
            Purge: lambda purge: self._link.call(SERVICE, purge.digest.hex(), "purge", None),
        }

    async def _claim(self, digest: bytes, number: int, request: Any) -> Answer:
        self._held[number] = digest
        answer = await self._ask(digest, request)
        if not isinstance(answer, Held):
            self._held.pop(number, None)
        return await self.found(answer) if isinstance(answer, Record) else answer

    async def _conclude(self, request: Settle | Release | Abandon) -> bool:
        digest = self._held.get(request.id)
        if digest is None:
            return False
        done: bool = await self._ask(digest, request)
        self._held.pop(request.id, None)
        return done

    async def _ask(self, digest: bytes, request: Any) -> Any:
        asked = [request, self._link.owner]
        return await self._link.call(SERVICE, digest.hex(), "ask", asked)

    async def _peek(self, peek: Peek) -> Found | None:
        if peek.digest is not None:
            record = await self._link.call(SERVICE, peek.digest.hex(), "peek", None)
        else:
            rows = await self._link.states(
                SERVICE, RECORD, where=f"value_utf8 LIKE '{peek.id:016x}%'", limit=1
            )
            record = unnumbered(rows[0][2]) if rows else None
        return None if record is None else await self.found(record)

    async def found(self, record: Record) -> Found:
        return Found(record, record.outcome is None and await self._life.is_gone(record.owner))

    # -- administration ------------------------------------------------------------------

    async def listed(self, query: Query, now: int) -> list[Found]:
        """Newest first. Restate's SQL sorts by number; everything else is looked at here."""
        found: list[Found] = []
        before = (1 << 63) - 1 if query.before is None else query.before
        while len(found) < query.limit:
            page = await self._page(before, query.after)
            fitting = [record for record in page if _fits(record, query, now)]
            found += [await self.found(record) for record in fitting]
            if len(page) < _PAGE:
                break
            before = page[-1].id
        return found[: query.limit]

    async def _page(self, before: int, after: int) -> list[Record]:
        where = f"value_utf8 < '{before:016x}' AND value_utf8 >= '{max(0, after + 1):016x}'"
        rows = await self._link.states(
            SERVICE, RECORD, where=where, order="value_utf8 DESC", limit=_PAGE
        )
        return [unnumbered(value) for _, _, value in rows]

    async def expired(self, now: int, limit: int) -> list[tuple[str, Record]]:
        """Of those whose time is over, with the ids of their objects; oldest first."""
        found: list[tuple[str, Record]] = []
        after = 0
        while len(found) < limit:
            rows = await self._link.states(
                SERVICE,
                RECORD,
                where=f"value_utf8 > '{after:016x}~'",
                order="value_utf8",
                limit=_PAGE,
            )
            for id_, _, value in rows:
                record: Record = unnumbered(value)
                after = record.id
                if record.expires_at <= now and (
                    record.outcome is not None or await self._life.is_gone(record.owner)
                ):
                    found.append((id_, record))
            if len(rows) < _PAGE:
                break
        return found[:limit]

    async def sweep(self, now: int, batch: int) -> int:
        swept = 0
        for id_, record in await self.expired(now, batch):
            asked = [record.id, record.fence, now]
            swept += bool(await self._link.call(SERVICE, id_, "sweep", asked))
        return swept


def _fits(record: Record, query: Query, now: int) -> bool:
    scope = record.ref.scope
    return (
        (query.state is None or record.state is query.state)
        and (query.prefix is None or record.ref.key.startswith(query.prefix))
        and (query.namespace is None or scope.namespace == query.namespace)
        and (query.within is None or scope.namespace.startswith(query.within))
        and (query.endpoint is None or scope.endpoint == query.endpoint)
        and not (record.outcome is not None and record.expires_at <= now)
    )
