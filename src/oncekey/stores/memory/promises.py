"""The oracle of promises: made with or without an execution, settled by whoever may, or parked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oncekey.core.execution import Promise, PromiseKind, PromiseState
from oncekey.core.model import Link, Record
from oncekey.core.ports import Gone, Insert
from oncekey.core.work import (
    AlreadySettled,
    Awaited,
    KeyExpired,
    KeyTaken,
    Make,
    Park,
    Parked,
    RequestKeyReused,
    Resolution,
    Resolve,
    Settled,
)
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
        if holder is not None and not _gives_way(holder, forked_from):
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
        state, body, settled_by, _ = parked
        return self._kept.settle(promise.id, state, body, settled_by, insert.created_at)

    # -- settling ------------------------------------------------------------------------

    def _resolve(self, request: Resolve) -> Resolution | Gone:
        promise = self._kept.find(request.target)
        if promise is None or promise.kind is not PromiseKind.PROMISE:
            return self._park(request)
        before = self._kept.keys.used(request.insert)
        if before is not None:
            return _seen(before, promise)
        expires_at = promise.key_expires_at
        by_key = request.target.digest is not None
        if by_key and expires_at is not None and expires_at <= request.now:
            return KeyExpired(promise)
        if request.insert is not None:
            gone = self._kept.keys.spend(request.insert, Link("promise", promise.public_id))
            if isinstance(gone, Gone):
                return gone
        settled = self._kept.settle(
            promise.id, request.state, request.body, request.settled_by, request.now
        )
        if settled is not None:
            return settled
        return AlreadySettled(promise, again=_is_by(promise, request.insert))

    def _park(self, request: Resolve) -> Parked | RequestKeyReused | Gone | None:
        """No promise has the key: keep the resolution for the one that will. The first counts."""
        park, insert = request.park, request.insert
        if park is None:
            return None
        if insert is not None:
            taken = self._kept.keys.spend(_for_parking(insert, park))
            if isinstance(taken, Gone):
                return taken
            if taken is not None and taken.request_id != f"key:{park.key}":
                return RequestKeyReused()
            if taken is not None:
                return Parked(taken.expires_at, again=True)
        early = self._kept.parked.get(park.digest)
        if early is None or early.expires_at <= request.now:
            self._kept.parked[park.digest] = ParkedResolution(
                request.state, request.body, request.settled_by, park.expires_at
            )
        return Parked(park.expires_at)


def _gives_way(holder: Promise, forked_from: int | None) -> bool:
    """A promise that will never be settled by its key does not keep it; what a fork waits for
    anew, its source has done with."""
    again = holder.execution is not None and holder.execution == forked_from
    return holder.state in _LOST or (again and holder.state is not PromiseState.PENDING)


def _seen(record: Record, promise: Promise) -> AlreadySettled | Parked | RequestKeyReused:
    """The request key was used before; by a request for this promise, or for another?"""
    used_for = record.request_id if record.link is None else record.link.id
    if used_for not in {promise.public_id, f"key:{promise.key}"}:
        return RequestKeyReused()
    if promise.state is PromiseState.PENDING:
        # It was parked, and delivered to a promise that had the key before this one.
        return Parked(record.expires_at, again=True)
    again = promise.settled_by == record.ref.key
    return AlreadySettled(promise, again=again, key_new=False)


def _is_by(promise: Promise, insert: Insert | None) -> bool:
    return insert is not None and promise.settled_by == insert.operation.ref.key


def _for_parking(insert: Insert, park: Park) -> Insert:
    """The record of a request that was parked says for which key, and is kept as long."""
    operation = insert.operation._replace(request_id=f"key:{park.key}")
    return insert._replace(operation=operation, expires_at=park.expires_at)
