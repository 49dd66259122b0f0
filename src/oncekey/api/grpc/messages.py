"""Executions, journals and promises as messages, in the words of `durable/shapes.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from oncekey.api.grpc import oncekey_pb2 as pb
from oncekey.core.execution import (
    Entry,
    Execution,
    Promise,
    PromiseState,
    Status,
    execution_id_of,
)
from oncekey.durable.engine import ControlAnswer, PublishAnswer, SettleAnswer

# Clients take 4 MiB unless told otherwise, and one execution may be more than half of that.
MAX_PAGE_BYTES = 2 << 20

_FAILED = frozenset({Status.FAILED, Status.CANCELLED, Status.PAUSED})
_NULL = b"null"

M = TypeVar("M", bound=Message)


def execution_message(execution: Execution) -> pb.Execution:
    origin, status = execution.forked_from, execution.status
    return pb.Execution(
        id=execution.public_id,
        kind=execution.sort.name.lower(),
        name=execution.name,
        status=status.name.lower(),
        key=execution.key,
        input_json=execution.input or _NULL,
        result_json=(execution.result or _NULL) if status is Status.SUCCEEDED else None,
        error_json=(execution.result or _NULL) if status in _FAILED else None,
        created_at=time_message(execution.created_at),
        completed_at=time_message(execution.completed_at),
        expires_at=time_message(execution.expires_at),
        forked_from=None if origin is None else execution_id_of(execution.sort, origin),
    )


def entry_message(number: int, entry: Entry) -> pb.JournalEntry:
    """`number` is the step's place in the journal; the first is 1."""
    body = entry.body or _NULL
    return pb.JournalEntry(
        step=number,
        kind=entry.step.name.lower(),
        name=entry.name,
        failed=entry.failed,
        value_json=None if entry.failed else body,
        error_json=body if entry.failed else None,
        attempts=entry.attempts,
        started_at=time_message(entry.started_at),
        at=time_message(entry.at),
    )


def promise_message(promise: Promise) -> pb.Promise:
    owner, body = promise.execution, promise.body or _NULL
    return pb.Promise(
        id=promise.public_id,
        name=promise.name,
        state=promise.state.name.lower(),
        key=promise.key,
        key_expires_at=time_message(promise.key_expires_at),
        timeout_at=time_message(promise.due_at),
        value_json=body if promise.state is PromiseState.RESOLVED else None,
        error_json=body if promise.state is PromiseState.REJECTED else None,
        resolved_by=promise.settled_by,
        created_at=time_message(promise.created_at),
        settled_at=time_message(promise.settled_at),
        workflow_id=None if owner is None else execution_id_of(promise.sort, owner),
    )


def settle_message(answer: SettleAnswer) -> pb.SettleResponse:
    promise = answer.promise
    return pb.SettleResponse(
        promise=None if promise is None else promise_message(promise),
        already_resolved=answer.already_resolved,
        idempotency_key_used=answer.key_used,
        idempotency_key_new=answer.key_new,
        resolved_by=None if promise is None else promise.settled_by,
        parked_until=time_message(answer.parked_until),
    )


def publish_message(answer: PublishAnswer) -> pb.PublishResponse:
    return pb.PublishResponse(
        event_id=answer.event_id,
        matched=answer.matched,
        idempotency_key_used=answer.key_used,
        idempotency_key_new=answer.key_new,
    )


def control_message(answer: ControlAnswer) -> pb.ControlResponse:
    return pb.ControlResponse(
        workflow_id=answer.execution_id,
        status=answer.status,
        idempotency_replayed=answer.replayed,
    )


def time_message(milliseconds: int | None) -> Timestamp | None:
    if milliseconds is None:
        return None
    seconds, rest = divmod(milliseconds, 1000)
    return Timestamp(seconds=seconds, nanos=rest * 1_000_000)


def fitting(messages: Iterable[M]) -> Iterator[M]:
    """As many, from the first on, as fit into one answer; one does in any case."""
    total = 0
    for message in messages:
        total += message.ByteSize()
        if total > MAX_PAGE_BYTES and total > message.ByteSize():
            return
        yield message
