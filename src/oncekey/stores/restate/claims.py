"""The room of claims: what the ledger asks about keys, put to the objects that have them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from oncekey.core.errors import StoreUnavailable
from oncekey.core.looking import Looked
from oncekey.core.model import Record, State, without_answer
from oncekey.core.ports import (
    Abandon,
    Answer,
    Found,
    Gone,
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
from oncekey.stores.restate.columns import begins, is_same
from oncekey.stores.restate.envelope import shared_key
from oncekey.stores.restate.holding import Holding
from oncekey.stores.restate.ingress import new_nonce
from oncekey.stores.restate.life import Life
from oncekey.stores.restate.link import Link, text
from oncekey.stores.restate.record import (
    ENDPOINT,
    EXPIRY,
    HOLDER,
    KEY,
    NAMESPACE,
    RECORD,
    SETTLED,
    STATE,
    is_apart,
    owner_text,
    unwritten,
)
from oncekey.stores.restate.request import NOBODY, SERVICE
from oncekey.stores.restate.turns import in_turn

Room = dict[type, Callable[[Any], Awaitable[Any]]]
# Of how many claims this process knows the key; those of others are looked for.
_KNOWN = 65_536
_PAUSE = 0.5
_LOOK_TIMEOUT = 1.0


class Claims:
    def __init__(self, link: Link, life: Life) -> None:
        self._link = link
        self._life = life
        self._holding = Holding(link.ingress, link.admin, link.space)
        # Whoever concludes a claim names its number, and it is mostly one of this process.
        self._keys: dict[int, bytes] = {}

    def answers(self) -> Room:
        return {
            Insert: lambda insert: self._claim(insert.digest, insert.id, insert),
            Replace: lambda asked: self._claim(asked.insert.digest, asked.insert.id, asked),
            Take: lambda take: self._claim(take.digest, take.id, take),
            Settle: self._conclude,
            Release: self._conclude,
            Abandon: self._conclude,
            Peek: self._peek,
            Purge: self._purge,
        }

    async def _claim(self, digest: bytes, number: int, request: Any) -> Answer:
        if await self._is_anothers(number, digest):
            record = await self._read(digest)
            return Gone() if record is None else await self.found(record)
        self._remember(number, digest)
        try:
            answer = await self._ask_surely(digest, request, NOBODY)
        except StoreUnavailable:
            # Restate may be there: what is forwarded has its object for itself until it ends. When
            # the key was somebody's before, that is what counts.
            holder = await self._holding.of(digest, patience=_LOOK_TIMEOUT)
            if holder is None or await self._holding.record_of(digest, 0, patience=_LOOK_TIMEOUT):
                raise
            return Found(holder.mark.record, lapsed=False)
        if not isinstance(answer, Record):
            return answer  # type: ignore[no-any-return]
        found = await self.found(answer)
        if not found.lapsed or answer.owner == NOBODY or isinstance(request, Insert):
            return found
        # Only who asks knows that the holder is gone; the object sees to it that it still holds.
        answer = await self._ask_surely(digest, request, answer.owner)
        return await self.found(answer) if isinstance(answer, Record) else answer

    async def _is_anothers(self, number: int, digest: bytes) -> bool:
        """Whether another key has the number, as far as this process knows."""
        known = self._keys.get(number, digest)
        if known == digest:
            return False
        record = await self._read(known)
        return record is not None and record.id == number

    def _remember(self, number: int, digest: bytes) -> None:
        self._keys[number] = digest
        while len(self._keys) > _KNOWN:
            del self._keys[next(iter(self._keys))]

    async def _conclude(self, request: Settle | Release | Abandon) -> bool:
        digest = self._keys.get(request.id)
        if digest is None:
            record = await self._numbered(request.id)
            if record is None:
                return False
            digest = record.ref.digest
        done: bool = await self._ask(digest, request, NOBODY)
        return done

    async def _ask(self, digest: bytes, request: Any, gone: int, nonce: str | None = None) -> Any:
        asked = [request, self._link.owner, gone]
        return await self._link.call(SERVICE, digest.hex(), "ask", asked, nonce=nonce)

    async def _ask_surely(self, digest: bytes, request: Any, gone: int) -> Any:
        """A claim that nobody is told of is given back, once it is known to have been made."""
        nonce = new_nonce()
        try:
            return await self._ask(digest, request, gone, nonce)
        except StoreUnavailable:
            self._link.begin(self._give_back(digest, request, gone, nonce))
            raise

    async def _give_back(self, digest: bytes, request: Any, gone: int, nonce: str) -> None:
        ending = None
        while True:
            await asyncio.sleep(_PAUSE)
            try:
                if ending is None:
                    answer = await self._ask(digest, request, gone, nonce)
                    if not isinstance(answer, Held):
                        return
                    ending = _undoing(request, answer.fence)
                await self._ask(digest, ending, NOBODY)
            except StoreUnavailable:
                continue
            return

    async def _purge(self, purge: Purge) -> bool:
        """Also what Restate itself remembers of a request that was forwarded."""
        fingerprint = await self._link.call(SERVICE, purge.digest.hex(), "purge", None)
        if fingerprint is None:
            return False
        shared = shared_key(purge.digest, bytes.fromhex(fingerprint))
        try:
            await self._holding.forget(purge.digest, shared)
        except StoreUnavailable:
            self._link.begin(self._forget_surely(purge.digest, shared))
            raise
        return True

    async def _forget_surely(self, digest: bytes, shared: str) -> None:
        while True:
            await asyncio.sleep(_PAUSE)
            try:
                await self._holding.forget(digest, shared)
            except StoreUnavailable:
                continue
            return

    # -- reading -------------------------------------------------------------------------

    async def _peek(self, peek: Peek) -> Found | None:
        if peek.digest is not None:
            record = await self._read(peek.digest)
        else:
            record = await self._numbered(peek.id)
        return await self._forwarded(peek) if record is None else await self.found(record)

    async def _forwarded(self, peek: Peek) -> Found | None:
        """What is being forwarded has no record before its end."""
        if peek.digest is None:
            holder = await self._holding.numbered(peek.id)
        else:
            holder = await self._holding.of(peek.digest)
        if holder is not None:
            return Found(holder.mark.record, lapsed=False)
        # It may have ended in between.
        record = None if peek.digest is None else await self._read(peek.digest)
        return None if record is None else await self.found(record)

    async def _read(self, digest: bytes) -> Record | None:
        record: Record | None = await self._link.call(SERVICE, digest.hex(), "peek", None)
        return record

    async def _numbered(self, number: int) -> Record | None:
        known = self._keys.get(number)
        record = None if known is None else await self._read(known)
        if record is not None and record.id == number:
            return record
        where = f"value_utf8 LIKE '{number:016x}%'"
        rows = await self._link.states(SERVICE, RECORD, where=where, limit=1)
        return await self._whole(*rows[0]) if rows else None

    async def _whole(self, id_: str, _: str, value: bytes) -> Record | None:
        """What a list has told of, with its body."""
        if not is_apart(value):
            return unwritten(value)
        record: Record | None = await self._link.call(SERVICE, id_, "peek", None)
        return record

    async def under(self, digest: bytes, number: int) -> Record | None:
        """What is written under a number for a key, also by a call that has not ended."""
        record: Record | None = await self._link.call(SERVICE, digest.hex(), "under", number)
        return record

    async def found(self, record: Record) -> Found:
        return Found(record, record.outcome is None and await self._life.is_gone(record.owner))

    # -- administration ------------------------------------------------------------------

    async def listed(self, query: Query, now: int) -> Looked[Found]:
        """Newest first, of everything there is: a query looks at all of it anyway."""
        rows = await self._link.states(
            SERVICE,
            RECORD,
            where=_conditions(query, now),
            order="value_utf8 DESC",
            limit=query.limit,
        )
        records = [without_answer(unwritten(value)) for _, _, value in rows]
        census = await self._life.census()
        return Looked(
            Found(record, record.outcome is None and census.is_gone(record.owner))
            for record in records
        )

    async def count_expired(self, now: int) -> int:
        return await self._link.count(SERVICE, RECORD, where=await self._is_expired(now))

    async def sweep(self, now: int, batch: int) -> int:
        where = await self._is_expired(now)
        rows = await self._link.states(SERVICE, RECORD, where=where, limit=batch)
        swept = await in_turn([self._forget(id_, unwritten(value), now) for id_, _, value in rows])
        return sum(swept)

    async def _is_expired(self, now: int) -> str:
        """SQL for it: the time is over, and nobody holds it."""
        living = ", ".join(
            f"'{owner_text(owner)}'" for owner in sorted((await self._life.census()).living)
        )
        return f"{EXPIRY} <= '{max(0, now):016x}' AND {HOLDER} NOT IN ({living})"

    async def _forget(self, id_: str, record: Record, now: int) -> bool:
        asked = [record.id, record.fence, now, record.owner]
        done: bool = await self._link.call(SERVICE, id_, "sweep", asked)
        return done


def _undoing(request: Insert | Replace | Take, fence: int) -> Release | Abandon:
    match request:
        case Replace(insert=Insert(id=number)) | Insert(id=number):
            return Release(number, fence)
        case Take(id=number):
            return Abandon(number, fence)


def _conditions(query: Query, now: int) -> str:
    over = f"({HOLDER} = {text(SETTLED)} AND {EXPIRY} <= '{max(0, now):016x}')"
    found = [f"value_utf8 >= '{max(0, query.after + 1):016x}'", f"NOT {over}"]
    if query.before is not None:
        found.append(f"value_utf8 < '{max(0, query.before):016x}'")
    if query.state is not None:
        found.append(_is_in(query.state))
    if query.namespace is not None:
        found.append(is_same(NAMESPACE, query.namespace))
    if query.within is not None:
        found.append(begins(NAMESPACE, query.within))
    if query.endpoint is not None:
        found.append(is_same(ENDPOINT, query.endpoint))
    if query.prefix is not None:
        found.append(begins(KEY, query.prefix))
    if query.key is not None:
        found.append(is_same(KEY, query.key))
    return " AND ".join(found)


def _is_in(state: State) -> str:
    """SQL for a state. What stands for a promise has no outcome, and is written so."""
    if state in {State.SUCCEEDED, State.FAILED}:
        return f"{STATE} = '{state:d}'"
    settled = ", ".join(f"'{each:d}'" for each in (State.SUCCEEDED, State.FAILED))
    not_ = "" if state is State.PROMISE else "NOT "
    return f'{STATE} NOT IN ({settled}) AND value_utf8 {not_}LIKE \'%,["promise","%\''
