"""The room of promises: made without an execution, found, settled by whoever may, or parked."""

from __future__ import annotations

import asyncio
from typing import Any

from oncekey.core.answers import (
    AlreadySettled,
    Awaited,
    KeyExpired,
    KeyTaken,
    Parked,
    RequestKeyReused,
    Resolution,
    Settled,
)
from oncekey.core.errors import StoreUnavailable
from oncekey.core.execution import Promise, PromiseKind, PromiseState, promise_place_of
from oncekey.core.model import Kind, Link, Outcome, Record
from oncekey.core.ports import Gone, Insert
from oncekey.core.work import FindPromise, Make, Resolve, Target
from oncekey.stores.memory.promises import gives_way, is_by, is_for, key_has_expired, named
from oncekey.stores.restate import promise as alone
from oncekey.stores.restate import request as requests
from oncekey.stores.restate import token as tokens
from oncekey.stores.restate.asked import Claimed, Claiming, Parking, Settling, Told, Unregistered
from oncekey.stores.restate.claims import Room
from oncekey.stores.restate.execution import SERVICE as EXECUTIONS
from oncekey.stores.restate.keys import told_by
from oncekey.stores.restate.link import Link as Line
from oncekey.stores.restate.values import unnumbered
from oncekey.stores.restate.work.calls import wall_clock
from oncekey.stores.restate.work.held import PROMISE

_PAUSE = 0.02
_CARRIED_OUT = Outcome(Kind.VALUE, body=b"null")


class Promises:
    def __init__(self, line: Line) -> None:
        self._line = line

    def answers(self) -> Room:
        return {
            Make: self._make,
            Resolve: self._resolve,
            FindPromise: lambda asked: self.find(asked.target),
        }

    async def _key(self, digest: bytes, handler: str, value: Any) -> Any:
        return await self._line.call(requests.SERVICE, digest.hex(), handler, value)

    async def _alone(self, number: int, handler: str, value: Any) -> Any:
        return await self._line.call(alone.SERVICE, f"{number:016x}", handler, value)

    # -- finding -------------------------------------------------------------------------

    async def find(self, target: Target) -> Promise | None:
        """The promise a target means, if it is the tenant's."""
        found = await self._meant(target)
        if found is None or found.tenant != target.tenant:
            return None
        return found if target.name in {None, found.name} else None

    async def _meant(self, target: Target) -> Promise | None:
        if target.digest is not None:
            record = await self._key(target.digest, "peek", None)
            return None if record is None else await self.holder_of(record)
        if target.token is not None:
            place = await self._line.call(tokens.SERVICE, target.token.hex(), "find", None)
            return None if place is None else await self._at(*place)
        if target.id is not None:
            return await self._numbered(target)
        if target.execution is None:
            return None
        return await self._of(target.execution, None, target.name)

    async def _numbered(self, target: Target) -> Promise | None:
        """Those of executions are asked for by their names from outside, and here by their numbers:
        nobody can have everything searched by asking for what is not there."""
        assert target.id is not None
        found = await self._at(None, target.id)
        if found is None and target.name is None:
            state = f"{PROMISE}{target.id:016x}"
            for _, _, kept in await self._line.states(EXECUTIONS, state, limit=1):
                found = unnumbered(kept)
        return found

    async def _at(self, execution: int | None, number: int) -> Promise | None:
        if execution is not None:
            return await self._of(execution, number, None)
        found: Promise | None = await self._alone(number, "find", None)
        return found

    async def _of(self, execution: int, number: int | None, name: str | None) -> Promise | None:
        id_ = f"{execution:016x}"
        found: Promise | None = await self._line.call(EXECUTIONS, id_, "promise", [number, name])
        return found

    async def holder_of(self, record: Record) -> Promise | None:
        """The promise that has a key."""
        place = None if record.link is None else promise_place_of(record.link.id)
        return None if place is None else await self._at(place.execution, record.id)

    # -- making --------------------------------------------------------------------------

    async def _make(self, request: Make) -> Awaited | KeyTaken | Gone:
        """The promise is there before its key: who has a key can always be found."""
        promise, insert, token = request
        if insert is not None:
            promise = with_key(promise, insert)
        answer: Awaited | Gone = await self._alone(
            promise.id,
            "make",
            [promise, None if insert is None else insert.digest, wall_clock()],
        )
        if isinstance(answer, Gone):
            return answer
        if insert is not None:
            told = await self.claim(answer.promise, insert)
            if isinstance(told, KeyTaken):
                await self._alone(promise.id, "abandon", None)
                return told
            answer = Awaited(await self._alone(promise.id, "registered", told))
        if token is not None:
            await self._alone(promise.id, "add_token", token.hex())
            await self.put_token(token, None, promise.id)
        return answer

    async def put_token(self, token: bytes, execution: int | None, promise: int) -> None:
        await self._line.call(tokens.SERVICE, token.hex(), "put", [execution, promise])

    async def claim(
        self, promise: Promise, insert: Insert, forked_from: int | None = None
    ) -> KeyTaken | Told | None:
        """Claim the key of a promise that is made. Answers what came for it before, if anything."""
        link = Link("promise", promise.public_id)
        claiming = Claiming(insert._replace(id=promise.id), link)
        while True:
            claimed: Claimed = await self._key(insert.digest, "claim", claiming)
            if claimed.record is None:
                parked, now = claimed.parked, insert.created_at
                return None if parked is None else told_by(parked, promise.id, now)
            holder = await self.holder_of(claimed.record)
            if holder is not None and not gives_way(holder, forked_from):
                return KeyTaken(holder)
            claiming = claiming._replace(instead=claimed.record.id)

    async def keeper(self, insert: Insert, forked_from: int | None) -> KeyTaken | None:
        """Who would keep a key from being claimed."""
        record: Record | None = await self._key(insert.digest, "peek", None)
        if record is None or record.expires_at <= insert.created_at:
            return None
        holder = await self.holder_of(record)
        return None if holder is None or gives_way(holder, forked_from) else KeyTaken(holder)

    # -- settling ------------------------------------------------------------------------

    async def _resolve(self, request: Resolve) -> Resolution:
        """The request's own key is spent before the promise is settled. Should this process die in
        between, the same request settles it when it comes again."""
        try:
            async with asyncio.timeout(self._line.patience):
                while True:
                    promise = await self.find(request.target)
                    if promise is None or promise.kind is not PromiseKind.PROMISE:
                        answer = await self._park(request)
                    else:
                        answer = await self._settle(request, promise)
                    if not isinstance(answer, Gone):
                        return answer
                    await asyncio.sleep(_PAUSE)
        except TimeoutError:
            raise StoreUnavailable("a promise is neither there nor gone") from None

    async def _settle(self, request: Resolve, promise: Promise) -> Resolution | Gone:
        insert = named(request)
        before = await self._used(request, promise, insert)
        if before is not None and not is_for(before, promise):
            return RequestKeyReused()
        if before is not None and promise.state is not PromiseState.PENDING:
            return AlreadySettled(promise, again=is_by(promise, insert), key_new=False)
        if key_has_expired(request, promise):
            return KeyExpired(promise)
        if before is not None:
            # It was parked, and its time was over before there was a promise.
            told = [before.id, promise.public_id]
            await self._key(before.ref.digest, "link", told)
        settled = await self._settled(request, promise)
        if settled is None:
            # It was forgotten, or is not made after all.
            return Gone()
        if isinstance(settled, AlreadySettled):
            again = is_by(settled.promise, insert)
            return AlreadySettled(settled.promise, again=again, key_new=before is None)
        return settled

    async def _used(
        self, request: Resolve, promise: Promise, insert: Insert | None
    ) -> Record | None:
        """Who has the key of the request; it is the request's own from now on if nobody has, and if
        it may settle the promise."""
        if insert is None:
            return None
        if key_has_expired(request, promise):
            record: Record | None = await self._key(insert.digest, "peek", None)
            is_past = record is not None and record.expires_at <= insert.created_at
            return None if record is None or is_past or record.id == insert.id else record
        return await self._spend(insert, Link("promise", promise.public_id))

    async def _spend(self, insert: Insert, link: Link | None = None) -> Record | None:
        """Claim the key of a request; None when it is the request's."""
        claimed: Claimed = await self._key(
            insert.digest, "claim", Claiming(insert, link, _CARRIED_OUT)
        )
        return claimed.record

    async def _settled(self, request: Resolve, promise: Promise) -> Settled | AlreadySettled | None:
        asked = self._settling(request, promise)
        answer: Settled | AlreadySettled | Unregistered | None
        answer = await self._ask_holder(promise, "settle", asked)
        if isinstance(answer, Unregistered):
            await self._deliver(promise, answer.digest, request.now)
            answer = await self._ask_holder(promise, "settle", asked._replace(is_first=True))
        assert not isinstance(answer, Unregistered)
        return answer

    def _settling(self, request: Resolve, promise: Promise) -> Settling:
        return Settling(
            promise.tenant,
            promise.id,
            None,
            request.state,
            request.body,
            request.now,
            request.settled_by,
            request.adopt,
            self._line.owner,
        )

    async def _deliver(self, promise: Promise, digest: bytes, now: int) -> None:
        """Settle it with what came for its key before it was made, if anything did. Whoever made it
        does the same; he may not have come to it."""
        asked = [promise.id, promise.public_id, now]
        parked: Parking | None = await self._key(digest, "deliver", asked)
        if parked is not None:
            handler = "registered" if promise.execution is None else "tell"
            await self._ask_holder(promise, handler, told_by(parked, promise.id, now))

    async def _ask_holder(self, promise: Promise, handler: str, value: Any) -> Any:
        """The object that has a promise."""
        if promise.execution is None:
            return await self._alone(promise.id, handler, value)
        return await self._line.call(EXECUTIONS, f"{promise.execution:016x}", handler, value)

    # -- parking -------------------------------------------------------------------------

    async def _park(self, request: Resolve) -> Resolution | Gone:
        """No promise has the key: keep the resolution for the one that will. The first counts."""
        park, insert, taken = request.park, named(request), None
        if park is None:
            return None
        if insert is not None:
            taken = await self._spend(insert)
            if taken is not None and taken.request_id != f"key:{park.key}":
                return RequestKeyReused()
            if taken is not None and taken.link is not None:
                return await self._delivered(taken, request)
        claimed = taken or insert
        parking = Parking(
            request.state,
            request.body,
            request.settled_by,
            park.expires_at,
            None if insert is None else insert.digest,
            0 if claimed is None else claimed.id,
        )
        record, until, early = await self._key(park.digest, "park", [parking, request.now, 0])
        if record is not None:
            holder = await self.holder_of(record)
            if holder is not None:
                # A promise has come meanwhile; unless it is somebody else's, it is found now.
                return Gone() if holder.tenant == request.target.tenant else None
            asked = [parking, request.now, record.id]
            record, until, early = await self._key(park.digest, "park", asked)
        return Gone() if record is not None else Parked(until, again=early and taken is not None)

    async def _delivered(
        self, record: Record, request: Resolve
    ) -> AlreadySettled | KeyExpired | Parked | Gone:
        """The request was carried out for a promise that has the key no more, or only just."""
        promise = await self._linked(record, request)
        if promise is None:
            return Parked(record.expires_at, again=True)
        if promise.state is PromiseState.PENDING and request.park is not None:
            await self._deliver(promise, request.park.digest, request.now)
            promise = await self._linked(record, request) or promise
        if promise.state is PromiseState.PENDING:
            return KeyExpired(promise) if promise.key is None else Gone()
        again = promise.settled_by == record.ref.key
        return AlreadySettled(promise, again=again, key_new=False)

    async def _linked(self, record: Record, request: Resolve) -> Promise | None:
        """The promise that a request was for."""
        assert record.link is not None
        place = promise_place_of(record.link.id)
        return None if place is None else await self.find(Target(request.target.tenant, *place))


def with_key(promise: Promise, insert: Insert) -> Promise:
    return promise._replace(key=insert.operation.ref.key, key_expires_at=insert.expires_at)
