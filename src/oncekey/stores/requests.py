"""Requests one by one, as steps of named SQL. Every store and every caller's transaction runs these."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

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
from oncekey.stores.rows import encode_headers, record_of

Row = Sequence[Any]
Parameters = dict[str, Any]
Steps = Generator[tuple[str, Parameters], list[Row], Answer]


class Setting(NamedTuple):
    """What a statement needs to know of the process that runs it."""

    owner: int
    is_gone: Callable[[Row], bool]
    """Whether the holder of an unsettled claim, in the last columns of its row, is gone."""


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
            return _changed("release", {"id": number, "fence": fence})
        case Abandon(number, fence):
            return _changed("abandon", {"id": number, "fence": fence})
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
    if record.outcome is not None or record.owner == setting.owner:
        return Found(record, False)
    return Found(record, setting.is_gone(row))


def seen(insert_id: int, answer: Answer) -> Answer:
    """A claim with our own number is ours: the commit we were unsure of went through."""
    if isinstance(answer, Found):
        return Held(answer.record.fence) if answer.record.id == insert_id else answer
    return Gone()


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
    return seen(insert.id, (yield from find(setting, digest=insert.digest)))


def _replace(replace: Replace, setting: Setting) -> Steps:
    old = {
        "id": replace.old_id,
        "fence": replace.old_fence,
        "now": replace.insert.created_at,
    }
    if (yield "forget_expired", old):
        yield "forget_outcome", {"id": replace.old_id}
    return (yield from _insert(replace.insert, setting))


def _take(take: Take, setting: Setting) -> Steps:
    yield "lock_claim", {"id": take.id}
    rows = yield "take", {"id": take.id, "fence": take.fence, "owner": setting.owner}
    if rows:
        return Held(take.fence + 1)
    found = yield from find(setting, digest=take.digest)
    return found if found is not None else Gone()


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


def _changed(name: str, parameters: Parameters) -> Steps:
    return bool((yield name, parameters))


def _purge(digest: bytes) -> Steps:
    rows = yield "purge", {"digest": digest}
    for row in rows:
        yield "forget_outcome", {"id": row[0]}
    return bool(rows)
