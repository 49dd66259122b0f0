"""Durable work as JSON: the words that the API, gRPC and the command line all answer with.

Values that were stored as JSON are embedded as they are; `json_of` makes bytes of a shape.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from oncekey.core.execution import (
    Entry,
    Execution,
    Promise,
    PromiseState,
    Status,
    execution_id_of,
)
from oncekey.core.work import Event
from oncekey.durable.engine import ControlAnswer, PromiseAnswer, PublishAnswer, SettleAnswer

Shape = dict[str, Any]

_FAILED = frozenset({Status.FAILED, Status.CANCELLED, Status.PAUSED})
_NULL = msgspec.Raw(b"null")
_encode = msgspec.json.Encoder().encode


def json_of(shape: Any) -> bytes:
    return _encode(shape)


def time_of(milliseconds: int | None) -> str | None:
    """RFC 3339, in UTC and with milliseconds."""
    if milliseconds is None:
        return None
    seconds, rest = divmod(milliseconds, 1000)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:03}Z"


def shape_of_execution(execution: Execution) -> Shape:
    origin = execution.forked_from
    shape: Shape = {
        "id": execution.public_id,
        "kind": execution.sort.name.lower(),
        "name": execution.name,
        "status": execution.status.name.lower(),
        "key": execution.key,
        "input": _raw(execution.input),
    }
    if execution.status is Status.SUCCEEDED:
        shape["result"] = _raw(execution.result)
    elif execution.status in _FAILED:
        shape["error"] = _raw(execution.result)
    shape |= {
        "created_at": time_of(execution.created_at),
        "completed_at": time_of(execution.completed_at),
        "expires_at": time_of(execution.expires_at),
        "forked_from": None if origin is None else execution_id_of(execution.sort, origin),
    }
    return shape


def shape_of_entry(number: int, entry: Entry) -> Shape:
    """`number` is the step's place in the journal; the first is 1."""
    return {
        "step": number,
        "kind": entry.step.name.lower(),
        "name": entry.name,
        "failed": entry.failed,
        "error" if entry.failed else "value": _raw(entry.body),
        "attempts": entry.attempts,
        "started_at": time_of(entry.started_at),
        "at": time_of(entry.at),
    }


def shape_of_promise(promise: Promise) -> Shape:
    owner = promise.execution
    shape: Shape = {
        "id": promise.public_id,
        "name": promise.name,
        "state": promise.state.name.lower(),
        "key": promise.key,
        "key_expires_at": time_of(promise.key_expires_at),
        "timeout_at": time_of(promise.due_at),
    }
    if promise.state is PromiseState.RESOLVED:
        shape["value"] = _raw(promise.body)
    elif promise.state is PromiseState.REJECTED:
        shape["error"] = _raw(promise.body)
    shape |= {
        "resolved_by": promise.settled_by,
        "created_at": time_of(promise.created_at),
        "settled_at": time_of(promise.settled_at),
        "workflow_id": None if owner is None else execution_id_of(promise.sort, owner),
    }
    return shape


def shape_of_new_promise(answer: PromiseAnswer) -> Shape:
    """The promise, with its token while that can be told."""
    shape = shape_of_promise(answer.promise)
    return shape if answer.token is None else shape | {"token": answer.token}


def shape_of_settle(answer: SettleAnswer) -> Shape:
    promise = answer.promise
    return {
        "promise": None if promise is None else shape_of_promise(promise),
        "already_resolved": answer.already_resolved,
        "idempotency_key_used": answer.key_used,
        "idempotency_key_new": answer.key_new,
        "resolved_by": None if promise is None else promise.settled_by,
        "parked_until": time_of(answer.parked_until),
    }


def shape_of_publish(answer: PublishAnswer) -> Shape:
    return {
        "event_id": answer.event_id,
        "matched": answer.matched,
        "idempotency_key_used": answer.key_used,
        "idempotency_key_new": answer.key_new,
    }


def shape_of_control(answer: ControlAnswer) -> Shape:
    return {
        "workflow_id": answer.execution_id,
        "status": answer.status,
        "idempotency_replayed": answer.replayed,
    }


def shape_of_event(event: Event) -> Shape:
    return {
        "id": f"ev_{event.id:016x}",
        "key": event.topic,
        "data": _raw(event.data),
        "headers": _raw(event.headers),
        "created_at": time_of(event.created_at),
        "expires_at": time_of(event.expires_at),
    }


def _raw(body: bytes | None) -> msgspec.Raw:
    return msgspec.Raw(body) if body else _NULL
