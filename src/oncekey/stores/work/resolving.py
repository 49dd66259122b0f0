"""Promises settled from outside, as steps of named SQL: each request once, or parked when it is
early."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

from oncekey.core.answers import AlreadySettled, KeyExpired, Parked, RequestKeyReused, Woken
from oncekey.core.execution import Promise, PromiseKind, PromiseState, promise_place_of
from oncekey.core.model import Record
from oncekey.core.ports import Gone, Insert
from oncekey.core.work import Park, Resolve, Target
from oncekey.stores.requests import Row, Setting, Step
from oncekey.stores.work.claims import claim, holder_of
from oncekey.stores.work.promises import Steps, find, link_request, settle


def resolve(request: Resolve, setting: Setting) -> Steps:
    promise = yield from _find_or_lock_key(request)
    if promise is None:
        return (yield from _park(request))
    if not setting.alone:
        promise = yield from _lock(promise)
    if promise is None or (request.target.digest is not None and promise.key is None):
        return Gone()
    expired = _key_has_expired(request, promise)
    if request.insert is not None:
        used = yield from _use_request_key(request, promise, only_look=expired)
        if used is not None:
            return used
    if expired:
        return KeyExpired(promise)
    settled = yield from settle(
        promise, request.state, request.body, request.settled_by, request.now
    )
    if settled is None:
        return AlreadySettled(promise, again=_is_by(request.insert, promise))
    if request.adopt and settled.woken is not None and settled.woken.ready:
        return settled._replace(woken=(yield from _adopt(settled.woken, request, setting)))
    return settled


def _lock(promise: Promise) -> Generator[Step, list[Row], Promise | None]:
    """As it is now that nobody else can change it."""
    if promise.execution is not None:
        yield "lock_execution", {"id": promise.execution}
    else:
        yield "lock_promise", {"id": promise.id}
    return (yield from find(Target(promise.tenant, id=promise.id)))


def _adopt(woken: Woken, request: Resolve, setting: Setting) -> Generator[Step, list[Row], Woken]:
    """Take what was woken for this process, in the same transaction."""
    names = json.dumps([f"{int(sort)}{name}" for sort, name in request.adopt])
    values = {"id": woken.execution, "owner": setting.owner, "names": names}
    rows = yield "adopt", values
    if not rows:
        return woken
    fence, wakes = rows[0]
    return woken._replace(ready=False, fence=fence, wakes=wakes)


def _find_or_lock_key(request: Resolve) -> Generator[Step, list[Row], Promise | None]:
    """None only when no promise has the key, and none can get it before the resolution is parked:
    a promise that is being made at this moment is waited for."""
    promise = yield from _find_promise(request.target)
    if promise is None and request.park is not None:
        yield "lock_key", {"digest": request.park.digest}
        promise = yield from _find_promise(request.target)
    return promise


def _find_promise(target: Target) -> Generator[Step, list[Row], Promise | None]:
    found = yield from find(target)
    return found if found is not None and found.kind is PromiseKind.PROMISE else None


def _key_has_expired(request: Resolve, promise: Promise) -> bool:
    expires_at = promise.key_expires_at
    return (
        request.target.digest is not None and expires_at is not None and expires_at <= request.now
    )


def _use_request_key(
    request: Resolve, promise: Promise, *, only_look: bool
) -> Generator[Step, list[Row], AlreadySettled | RequestKeyReused | Gone | None]:
    """Register the request's own key. None when it had no effect so far: then the request is
    carried out."""
    insert = _named(request)
    assert insert is not None
    taken: Record | Gone | None
    if only_look:
        taken = yield from holder_of(insert)
    else:
        taken = yield from _claim_request(insert, promise.public_id)
    if not isinstance(taken, Record):
        return taken
    link = taken.link.id if taken.link is not None else taken.request_id
    if link != promise.public_id and not (promise.key and link == f"key:{promise.key}"):
        return RequestKeyReused()
    if promise.state is PromiseState.PENDING:
        # It was parked, and its time was over before there was a promise.
        if not only_look:
            yield from link_request(taken.id, promise)
        return None
    return AlreadySettled(promise, again=_is_by(insert, promise), key_new=False)


def _is_by(insert: Insert | None, promise: Promise) -> bool:
    return insert is not None and promise.settled_by == insert.operation.ref.key


def _named(request: Resolve) -> Insert | None:
    """The record of a request that may be parked says for which key, so that it is known again
    when nothing has the key any more."""
    insert, park = request.insert, request.park
    if insert is None or park is None:
        return insert
    return insert._replace(operation=insert.operation._replace(request_id=f"key:{park.key}"))


def _claim_request(
    insert: Insert, promise_id: str | None
) -> Generator[Step, list[Row], Record | Gone | None]:
    taken = yield from claim(insert, promise=promise_id)
    if taken is not None:
        return taken
    # The request is carried out in this very transaction, so that it is over as it begins.
    yield (
        "settle",
        {
            "id": insert.id,
            "fence": 1,
            "kind": 1,
            "status": 0,
            "headers": b"",
            "body": b"null",
            "completed_at": insert.created_at,
            "expires_at": insert.expires_at,
        },
    )
    return None


def _park(request: Resolve) -> Generator[Step, list[Row], Any]:
    """No promise has the key: keep the resolution for the one that will."""
    park, number, again = request.park, None, False
    if park is None:
        return None
    insert = _named(request)
    if insert is not None:
        taken = yield from _claim_request(insert, None)
        if isinstance(taken, Gone):
            return taken
        if taken is not None and taken.request_id != f"key:{park.key}":
            return RequestKeyReused()
        if taken is not None and taken.link is not None:
            return (yield from _delivered(taken, request.target.tenant))
        number, again = insert.id if taken is None else taken.id, taken is not None
    yield "forget_parked_if_past", {"digest": park.digest, "now": request.now}
    if (yield "park", _parked_values_of(request, park, number)):
        return Parked(park.expires_at)
    kept = yield "find_parked", {"digest": park.digest}
    return Parked(kept[0][0] if kept else park.expires_at, again)


def _delivered(record: Record, tenant: str) -> Generator[Step, list[Row], AlreadySettled | Parked]:
    """The request was carried out for a promise that has the key no more."""
    assert record.link is not None
    place = promise_place_of(record.link.id)
    promise = None
    if place is not None:
        promise = yield from find(Target(tenant, place.id, place.execution, place.name))
    if promise is None:
        return Parked(record.expires_at, again=True)
    again = promise.settled_by == record.ref.key
    return AlreadySettled(promise, again=again, key_new=False)


def _parked_values_of(request: Resolve, park: Park, number: int | None) -> dict[str, Any]:
    return {
        "digest": park.digest,
        "tenant": request.target.tenant,
        "key": park.key,
        "state": int(request.state),
        "body": request.body,
        "settled_by": request.settled_by,
        "created_at": request.now,
        "expires_at": park.expires_at,
        "request": number,
    }
