"""The oracle of promises: made with or without an execution, settled by whoever may, or parked."""

from __future__ import annotations

from collections.abc import Callable
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
    Woken,
)
from oncekey.core.execution import Promise, PromiseKind, PromiseState, promise_place_of
from oncekey.core.model import Link, Record
from oncekey.core.ports import Gone, Insert
from oncekey.core.work import Make, Resolve, Target
from oncekey.stores.memory.kept import Kept, ParkedResolution

_LOST = {PromiseState.TIMED_OUT, PromiseState.CANCELLED}


class MemoryPromises:
    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def answers(self) -> dict[type, Callable[[Any], Any]]:
        return {Make: self._make, Resolve: self._resolve}

    # -- making --------------------------------------------------------------------------

    def _make(self, request: Make) -> Awaited | KeyTaken | Gone:
        promise, insert, token = request
        refused = self.register(promise, insert)
        if refused is not None:
            return refused
        known = self._kept.promise(promise.id)
        if known is not None:
            if (known.tenant, known.name, known.created_at) == (
                promise.tenant,
                promise.name,
                promise.created_at,
            ) and known.execution is None:
                return Awaited(known)
            self.unregister(insert)
            return Gone()
        made = self.add(promise, insert, token)
        settled = self.deliver_parked(made, insert)
        return Awaited(settled.promise if settled else made)

    def register(
        self, promise: Promise, insert: Insert | None, *, forked_from: int | None = None
    ) -> KeyTaken | Gone | None:
        """Claim the key of a promise. None when it is the promise's, or when there is none."""
        if insert is None:
            return None
        link = Link("promise", promise.public_id)
        taken = self._kept.keys.claim(insert, link)
        if not isinstance(taken, Record):
            return taken
        holder = self._kept.promise(taken.id)
        if holder is not None and not gives_way(holder, forked_from):
            return KeyTaken(holder)
        self._kept.keys.forget(taken.id)
        again = self._kept.keys.claim(insert, link)
        assert not isinstance(again, Record)
        return again

    def unregister(self, insert: Insert | None) -> None:
        if insert is not None:
            self._kept.keys.forget(insert.id)

    def add(self, promise: Promise, insert: Insert | None, token: bytes | None) -> Promise:
        if insert is not None:
            key, expires_at = insert.operation.ref.key, insert.expires_at
            promise = promise._replace(key=key, key_expires_at=expires_at)
        self._kept.promises[promise.id] = promise
        if token is not None:
            self._kept.tokens.setdefault(token, promise.id)
        return promise

    def deliver_parked(self, promise: Promise, insert: Insert | None) -> Settled | None:
        """Settle a new promise with the resolution that came before it, if there is one."""
        parked = None if insert is None else self._kept.parked.pop(insert.digest, None)
        if insert is None or parked is None or parked.expires_at <= insert.created_at:
            return None
        state, body, settled_by, _, request = parked
        self._kept.keys.link(request, promise.public_id)
        return self._kept.settle(promise.id, state, body, settled_by, insert.created_at)

    # -- settling ------------------------------------------------------------------------

    def _resolve(self, request: Resolve) -> Resolution | Gone:
        promise = self._kept.find(request.target)
        if promise is None or promise.kind is not PromiseKind.PROMISE:
            return self._park(request)
        insert = named(request)
        before = self._kept.keys.used(insert)
        if before is not None and not is_for(before, promise):
            return RequestKeyReused()
        if before is not None and promise.state is not PromiseState.PENDING:
            return AlreadySettled(promise, again=is_by(promise, insert), key_new=False)
        if key_has_expired(request, promise):
            return KeyExpired(promise)
        if before is not None:
            # It was parked, and its time was over before there was a promise.
            self._kept.keys.link(before.id, promise.public_id)
        elif insert is not None:
            gone = self._kept.keys.spend(insert, Link("promise", promise.public_id))
            if isinstance(gone, Gone):
                return gone
        settled = self._kept.settle(
            promise.id, request.state, request.body, request.settled_by, request.now
        )
        if settled is None:
            return AlreadySettled(promise, again=is_by(promise, insert))
        return settled._replace(woken=self._adopted(settled.woken, request))

    def _adopted(self, woken: Woken | None, request: Resolve) -> Woken | None:
        """What was woken is taken at once, when the asking process says that it can be."""
        if woken is None or not woken.ready:
            return woken
        execution = self._kept.executions[woken.execution]
        if (execution.sort, execution.name) not in request.adopt:
            return woken
        taken = self._kept.take(execution)
        return woken._replace(ready=False, fence=taken.fence, wakes=taken.wakes)

    def _park(self, request: Resolve) -> Resolution | Gone:
        """No promise has the key: keep the resolution for the one that will. The first counts."""
        park, insert, taken = request.park, named(request), None
        if park is None:
            return None
        if insert is not None:
            taken = self._kept.keys.spend(insert)
            if isinstance(taken, Gone):
                return taken
            if taken is not None and taken.request_id != f"key:{park.key}":
                return RequestKeyReused()
            if taken is not None and taken.link is not None:
                return self._delivered(taken, request.target.tenant)
        early = self._kept.parked.get(park.digest)
        if early is not None and early.expires_at > request.now:
            return Parked(early.expires_at, again=taken is not None)
        claimed = taken or insert
        self._kept.parked[park.digest] = ParkedResolution(
            request.state,
            request.body,
            request.settled_by,
            park.expires_at,
            None if claimed is None else claimed.id,
        )
        return Parked(park.expires_at)

    def _delivered(self, record: Record, tenant: str) -> AlreadySettled | Parked:
        """The request was carried out for a promise that has the key no more."""
        assert record.link is not None
        place = promise_place_of(record.link.id)
        promise = None if place is None else self._kept.find(Target(tenant, *place))
        if promise is None:
            return Parked(record.expires_at, again=True)
        again = promise.settled_by == record.ref.key
        return AlreadySettled(promise, again=again, key_new=False)


def key_has_expired(request: Resolve, promise: Promise) -> bool:
    by_key, expires_at = request.target.digest is not None, promise.key_expires_at
    return by_key and expires_at is not None and expires_at <= request.now


def gives_way(holder: Promise, forked_from: int | None) -> bool:
    """A promise that will never be settled by its key does not keep it; what a fork waits for
    anew, its source has done with."""
    again = holder.execution is not None and holder.execution == forked_from
    return holder.state in _LOST or (again and holder.state is not PromiseState.PENDING)


def is_for(record: Record, promise: Promise) -> bool:
    """Whether a request key that was used before was used for this promise."""
    if record.link is not None:
        return record.link.id == promise.public_id
    return promise.key is not None and record.request_id == f"key:{promise.key}"


def is_by(promise: Promise, insert: Insert | None) -> bool:
    return insert is not None and promise.settled_by == insert.operation.ref.key


def named(request: Resolve) -> Insert | None:
    """The record of a request that may be parked says for which key, so that it is known again
    when nothing has the key any more."""
    insert, park = request.insert, request.park
    if insert is None or park is None:
        return insert
    return insert._replace(operation=insert.operation._replace(request_id=f"key:{park.key}"))
