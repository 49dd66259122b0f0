"""Requests one by one, as steps of named SQL, for SQL stores and callers' transactions."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeVar

from oncekey.core.model import Record
from oncekey.core.ports import (
    Abandon,
    Answer,
    Found,
    Gone,
    Held,
    Insert,
    Peek,
    Purge,
    Release,
    Replace,
    Request,
    Settle,
    Take,
)
from oncekey.core.work import ENGINE
from oncekey.stores.rows import encode_headers, record_of

T = TypeVar("T")
Row = Sequence[Any]
Parameters = dict[str, Any]
Step = tuple[str, Parameters]
Steps = Generator[Step, list[Row], Any]
"""Its value is the answer."""

# The owner of a claim that nobody holds.
NOBODY = 0


class Setting(NamedTuple):
    """What a statement needs to know of the process that runs it."""

    owner: int
    is_gone: Callable[[Row], bool]
    """Whether the holder of an unsettled claim, in the last columns of its row, is gone."""
    alone: bool = False
    """Whether a transaction that writes is the only one: what it has read, nobody changes."""


def drive(steps: Generator[Step, list[Row], T], run: Callable[[str, Parameters], list[Row]]) -> T:
    """Carry the steps out by `run`, which is given the name of a query and its values."""
    try:
        name, values = next(steps)
        while True:
            name, values = steps.send(run(name, values))
    except StopIteration as stop:
        answer: T = stop.value
        return answer


def carry_out(request: Request, setting: Setting) -> Steps:
    match request:
        case Insert():
            return _insert(request, setting)
        case Replace():
            return _replace(request, setting)
        case Take():
            return _take(request, setting)
        case Settle():
            return _settle(request)
        case Release(number, fence):
            return _let_go("release", {"id": number, "fence": fence})
        case Abandon(number, fence):
            values = {"id": number, "fence": fence, "owner": setting.owner}
            return _let_go("abandon", values)
        case Purge(digest):
            return _purge(digest)
        case Peek(digest, number):
            return find(setting, digest=digest, number=number)


def find(setting: Setting, *, digest: bytes | None = None, number: int = 0) -> Steps:
    """The record as it is now; None when there is none."""
    name = "find" if digest is not None else "find_by_id"
    rows = yield name, {"digest": digest} if digest is not None else {"id": number}
    return found_of(rows[0], setting) if rows else None


def found_of(row: Row, setting: Setting) -> Found:
    record = record_of(row)
    if record.outcome is not None or record.owner in {setting.owner, ENGINE}:
        return Found(record, False)
    return Found(record, setting.is_gone(row))


def seen(insert_id: int, owner: int, answer: Answer) -> Answer:
    """An open claim with our number and owner is ours: the commit we were unsure of went through.

    The number alone says nothing: another process may draw it in the same millisecond.
    """
    if not isinstance(answer, Found):
        return Gone()
    record = answer.record
    ours = record.id == insert_id and record.owner == owner and record.outcome is None
    return Held(record.fence) if ours else answer


def insert_of(request: Request) -> Insert | None:
    """The claim a request makes of a new key, if it makes one."""
    if isinstance(request, Replace):
        return request.insert
    return request if isinstance(request, Insert) else None


def claim_alone(request: Request, insert: Insert, setting: Setting) -> Steps:
    """Claim without waiting: a claim in somebody's open transaction is not visible, its lock is."""
    rows = yield "try_key_lock", {"digest": insert.digest}
    if rows and rows[0][0]:
        return (yield from carry_out(request, setting))
    return held_elsewhere(insert)


def held_elsewhere(insert: Insert) -> Found:
    """The key is in the hands of a transaction that is still open: all that is known is that."""
    operation = insert.operation
    record = Record(
        insert.id,
        operation.ref,
        operation.fingerprint,
        NOBODY,
        1,
        operation.request_id,
        operation.retention,
        insert.created_at,
        insert.expires_at,
    )
    return Found(record, lapsed=False)


def forget_expired(
    number: int, fence: int, now: int, setting: Setting
) -> Generator[Step, list[Row], bool]:
    """Delete a record with its outcome, if it is the one seen, is over and is expired still."""
    yield "lock_claim", {"id": number}
    found = yield from find(setting, number=number)
    if not isinstance(found, Found) or not (found.lapsed or found.record.outcome is not None):
        return False
    rows = yield "forget_expired", {"id": number, "fence": fence, "now": now}
    if rows:
        yield "forget_outcome", {"id": number}
    return bool(rows)


def _insert(insert: Insert, setting: Setting) -> Steps:
    operation = insert.operation
    rows = yield (
        "insert",
        {
            "id": insert.id,
            "digest": insert.digest,
            "namespace": operation.ref.scope.namespace,
            "endpoint": operation.ref.scope.endpoint,
            "key": operation.ref.key,
            "fingerprint": operation.fingerprint,
            "owner": setting.owner,
            "request_id": operation.request_id,
            "retention": operation.retention,
            "created_at": insert.created_at,
            "expires_at": insert.expires_at,
        },
    )
    if rows:
        return Held(1)
    found = yield from find(setting, digest=insert.digest)
    return seen(insert.id, setting.owner, found)


def _replace(replace: Replace, setting: Setting) -> Steps:
    old_id, old_fence, insert = replace
    yield from forget_expired(old_id, old_fence, insert.created_at, setting)
    return (yield from _insert(replace.insert, setting))


def _take(take: Take, setting: Setting) -> Steps:
    locked = yield "try_lock_claim", {"id": take.id}
    found = yield from find(setting, digest=take.digest)
    if not isinstance(found, Found):
        return Gone()
    if found.record.id != take.id:
        return found
    if not locked:
        # Whoever has it locked is alive: the holder that came back, or another who takes it over.
        return Found(found.record, lapsed=False)
    if found.lapsed and found.record.fence == take.fence:
        values = {"id": take.id, "fence": take.fence, "owner": setting.owner}
        if (yield "take", values):
            return Held(take.fence + 1)
    return found


def _settle(settle: Settle) -> Steps:
    outcome = settle.outcome
    rows = yield (
        "settle",
        {
            "id": settle.id,
            "fence": settle.fence,
            "kind": int(outcome.kind),
            "status": outcome.status,
            "headers": encode_headers(outcome.headers) if outcome.headers else b"",
            "body": outcome.body,
            "completed_at": settle.completed_at,
            "expires_at": settle.expires_at,
        },
    )
    return True if rows else (yield from settled(settle))


def settled(settle: Settle) -> Steps:
    """Whether the outcome stored is the one of this fence: then an unsure commit went through."""
    rows = yield "outcome_fence", {"id": settle.id}
    return bool(rows) and rows[0][0] == settle.fence


def _let_go(name: str, values: Parameters) -> Steps:
    yield "lock_claim", {"id": values["id"]}
    return bool((yield name, values))


def _purge(digest: bytes) -> Steps:
    rows = yield "purge", {"digest": digest}
    for row in rows:
        yield "forget_outcome", {"id": row[0]}
    return bool(rows)
