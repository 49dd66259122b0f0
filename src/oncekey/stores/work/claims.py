"""Claims that an execution, a promise or an event holds: no process's death lets them lapse."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from oncekey.core.model import Record
from oncekey.core.ports import Gone, Insert
from oncekey.core.work import ENGINE
from oncekey.stores.requests import Row, Step
from oncekey.stores.rows import record_of

Claiming = Generator[Step, list[Row], Record | Gone | None]


def claim(
    insert: Insert,
    *,
    workflow: str | None = None,
    task: str | None = None,
    promise: str | None = None,
) -> Claiming:
    """Claim a key for what has the claim's number. None when that went well, else who has it.

    A record past its time is forgotten first. One with the claim's own number is the claim itself:
    a commit nobody was sure of went through. Gone: another process drew the number as well.
    """
    values = _values_of(insert, workflow, task, promise)
    while not (yield "claim_for_engine", values):
        rows = yield "find", {"digest": insert.digest}
        if not rows:
            return Gone()
        record = record_of(rows[0])
        if record.id == insert.id and record.owner == ENGINE:
            return None
        if not is_past(record, insert.created_at):
            return record
        yield from forget(record.id)
    return None


def holder_of(insert: Insert) -> Generator[Step, list[Row], Record | None]:
    """Who has the key, without claiming it."""
    rows = yield "find", {"digest": insert.digest}
    record = record_of(rows[0]) if rows else None
    if record is None or record.id == insert.id or is_past(record, insert.created_at):
        return None
    return record


def is_past(record: Record, now: int) -> bool:
    """Whether the key can be used anew. What still runs under a key has it however long."""
    running = record.outcome is None and record.link is not None and record.link.kind != "promise"
    return record.expires_at <= now and not running


def forget(number: int) -> Generator[Step, list[Row], None]:
    yield "forget_claim", {"id": number}
    yield "forget_outcome", {"id": number}


def _values_of(
    insert: Insert, workflow: str | None, task: str | None, promise: str | None
) -> dict[str, Any]:
    operation = insert.operation
    return {
        "id": insert.id,
        "digest": insert.digest,
        "namespace": operation.ref.scope.namespace,
        "endpoint": operation.ref.scope.endpoint,
        "key": operation.ref.key,
        "fingerprint": operation.fingerprint,
        "owner": ENGINE,
        "request_id": operation.request_id,
        "retention": operation.retention,
        "created_at": insert.created_at,
        "expires_at": insert.expires_at,
        "workflow_id": workflow,
        "task_id": task,
        "promise_id": promise,
    }
