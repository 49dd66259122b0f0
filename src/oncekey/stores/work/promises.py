"""Promises as steps of named SQL: made, found, settled."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from oncekey.core.answers import Awaited, KeyTaken, Settled, Woken
from oncekey.core.execution import Promise, PromiseKind, PromiseState, Status
from oncekey.core.model import Record
from oncekey.core.ports import Gone, Insert
from oncekey.core.work import Make, Match, Target, event_id_of
from oncekey.stores.requests import Row, Setting, Step
from oncekey.stores.work.claims import claim, forget
from oncekey.stores.work.rows import entry_of_promise, promise_of

Steps = Generator[Step, list[Row], Any]
_OVER = (PromiseState.TIMED_OUT, PromiseState.CANCELLED)


def make(request: Make, setting: Setting) -> Steps:
    promise, insert, token = request
    if insert is not None:
        yield "lock_key", {"digest": insert.digest}
    taken = yield from register(promise, insert)
    if taken is not None:
        return taken
    made = yield "make_promise", _values_of(promise, keyed=insert is not None)
    if not made:
        return (yield from _again_or_gone(request))
    if token is not None:
        yield "add_token", {"digest": token, "promise": promise.id}
    promise = with_key(promise, insert)
    settled = yield from deliver_parked(promise, insert)
    return Awaited(settled.promise if settled else promise)


def with_key(promise: Promise, insert: Insert | None) -> Promise:
    """The promise as it is read."""
    if insert is None:
        return promise
    return promise._replace(key=insert.operation.ref.key, key_expires_at=insert.expires_at)


def _again_or_gone(request: Make) -> Steps:
    """The promise with its number is this one, made by an unsure commit, or it is another's."""
    promise, insert, _ = request
    rows = yield "find_promise", {"id": promise.id}
    found = promise_of(rows[0]) if rows else None
    wanted = (promise.tenant, promise.name, promise.created_at, None)
    if found and (found.tenant, found.name, found.created_at, found.execution) == wanted:
        return Awaited(found)
    if insert is not None:
        yield from forget(insert.id)
    return Gone()


def register(
    promise: Promise, insert: Insert | None, *, forked_from: int | None = None
) -> Generator[Step, list[Row], KeyTaken | Gone | None]:
    """Claim the key of a promise. None when it is the promise's, or when there is none."""
    if insert is None:
        return None
    for _ in range(2):
        record = yield from claim(insert, promise=promise.public_id)
        if not isinstance(record, Record):
            return record
        rows = yield "find_promise", {"id": record.id}
        holder = promise_of(rows[0]) if rows else None
        if holder is not None and not _gives_way(holder, forked_from):
            return KeyTaken(holder)
        yield from forget(record.id)
    raise AssertionError(insert)


def _gives_way(holder: Promise, forked_from: int | None) -> bool:
    """A promise that will never be settled by its key does not keep it; what a fork waits for
    anew, its source has done with."""
    again = holder.execution is not None and holder.execution == forked_from
    return holder.state in _OVER or (again and holder.state is not PromiseState.PENDING)


def insert_promise(promise: Promise, *, keyed: bool) -> Generator[Step, list[Row], bool]:
    return bool((yield "make_promise", _values_of(promise, keyed=keyed)))


def deliver_parked(
    promise: Promise, insert: Insert | None
) -> Generator[Step, list[Row], Settled | None]:
    """Settle a new promise with the resolution that came before it, if there is one."""
    if insert is None:
        return None
    rows = yield "take_parked", {"digest": insert.digest}
    for state, body, settled_by, expires_at, number in rows:
        if expires_at > insert.created_at:
            yield from link_request(number, promise)
            return (
                yield from settle(
                    promise, PromiseState(state), bytes(body), settled_by, insert.created_at
                )
            )
    return None


def link_request(request: int | None, promise: Promise) -> Generator[Step, list[Row], None]:
    """The record of a request that was parked says which promise it was for in the end."""
    if request is not None:
        yield "link_request", {"id": request, "promise_id": promise.public_id}


# -- settling ----------------------------------------------------------------------------------


def settle(
    promise: Promise, state: PromiseState, body: bytes, settled_by: str | None, now: int
) -> Generator[Step, list[Row], Settled | None]:
    """Settle a pending promise, journal it, wake who waits. None when somebody was faster."""
    values = {
        "id": promise.id,
        "state": int(state),
        "body": body,
        "settled_by": settled_by,
        "now": now,
    }
    if not (yield "settle_promise", values):
        return None
    settled = promise._replace(state=state, body=body, settled_by=settled_by, settled_at=now)
    if promise.execution is None:
        return Settled(settled, None)
    entry = None
    if promise.kind is not PromiseKind.RETRY:
        entry = entry_of_promise(settled)
        yield (
            "append",
            {
                "execution": promise.execution,
                "seq": entry.seq,
                "step": int(entry.step),
                "name": entry.name,
                "fingerprint": entry.fingerprint,
                "failed": int(entry.failed),
                "body": entry.body,
                "attempts": entry.attempts,
                "started_at": entry.started_at,
                "at": entry.at,
            },
        )
    rows = yield "wake", {"id": promise.execution}
    ready = bool(rows) and rows[0][0] == Status.READY
    return Settled(settled, Woken(promise.execution, ready, entry, promise.id))


def match(request: Match, setting: Setting) -> Steps:
    woken, fitting = [], []
    for number in request.promises:
        found = yield from find(Target(request.tenant, id=number))
        if found is None or found.kind is not PromiseKind.EVENT:
            continue
        if found.execution is not None:
            fitting.append((found.execution, number, found))
    # By execution: whoever else locks several does so in this order, too.
    for execution, _, promise in sorted(fitting, key=lambda each: each[:2]):
        yield "lock_execution", {"id": execution}
        settled = yield from settle(
            promise, PromiseState.RESOLVED, request.body, event_id_of(request.event), request.now
        )
        if settled is not None and settled.woken is not None:
            woken.append(settled.woken)
    for number, trouble in request.troubles:
        yield "note_trouble", {"id": number, "trouble": trouble}
    if woken:
        yield "count_matches", {"id": request.event, "count": len(woken)}
    return woken


def find(target: Target) -> Generator[Step, list[Row], Promise | None]:
    """The promise a target means, if it is the tenant's."""
    if target.digest is not None:
        rows = yield "find_promise_by_key", {"digest": target.digest}
    elif target.token is not None:
        rows = yield "find_promise_by_token", {"digest": target.token}
    elif target.id is not None:
        rows = yield "find_promise", {"id": target.id}
    else:
        values = {"execution": target.execution, "name": target.name}
        rows = yield "find_promise_by_name", values
    promise = promise_of(rows[0]) if rows else None
    if promise is None or promise.tenant != target.tenant:
        return None
    named = target.name is None or target.name == promise.name
    return promise if named else None


def _values_of(promise: Promise, *, keyed: bool) -> dict[str, Any]:
    return {
        "id": promise.id,
        "tenant": promise.tenant,
        "kind": int(promise.kind),
        "name": promise.name,
        "created_at": promise.created_at,
        "execution": promise.execution,
        "seq": promise.seq,
        "fingerprint": promise.fingerprint,
        "keyed": int(keyed),
        "due_at": promise.due_at,
        "topic": promise.topic,
        "condition": promise.condition,
        "target": promise.target,
        "attempts": promise.attempts,
        "body": promise.body,
    }
