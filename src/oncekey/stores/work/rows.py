"""Rows of durable work to values. The column order is that of the views in the migration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oncekey.core.execution import (
    Entry,
    Execution,
    Promise,
    PromiseKind,
    PromiseState,
    Sort,
    Status,
    Step,
)
from oncekey.core.work import Event

Row = Sequence[Any]

_STEP_BY_KIND = {
    PromiseKind.PROMISE: Step.PROMISE,
    PromiseKind.SLEEP: Step.SLEEP,
    PromiseKind.EVENT: Step.EVENT,
    PromiseKind.CALL: Step.CALL,
}


def execution_of(row: Row) -> Execution:
    (
        number, tenant, sort, name, given, status, owner, fence, created_at, wakes, keep, key,
        frees_key, due_at, completed_at, expires_at, result, forked_from, forked_at,
        origin,
    ) = row  # fmt: skip
    return Execution(
        number,
        tenant,
        Sort(sort),
        name,
        bytes(given),
        Status(status),
        owner,
        fence,
        created_at,
        wakes,
        keep,
        key,
        bool(frees_key),
        due_at,
        completed_at,
        expires_at,
        _bytes_of(result),
        forked_from,
        forked_at,
        origin,
    )


def entry_of(row: Row) -> Entry:
    seq, step, name, fingerprint, failed, body, attempts, started_at, at = row
    return Entry(
        seq,
        Step(step),
        name,
        bytes(fingerprint),
        bool(failed),
        bytes(body),
        attempts,
        started_at,
        at,
    )


def promise_of(row: Row) -> Promise:
    (
        number, tenant, kind, name, state, created_at, execution, seq, sort, fingerprint, key,
        key_expires_at, due_at, body, settled_by, settled_at, topic, condition, trouble, target,
        attempts,
    ) = row[:21]  # fmt: skip
    return Promise(
        number,
        tenant,
        PromiseKind(kind),
        name,
        PromiseState(state),
        created_at,
        execution,
        seq,
        Sort(sort or 0),
        bytes(fingerprint),
        key,
        key_expires_at,
        due_at,
        _bytes_of(body),
        settled_by,
        settled_at,
        topic,
        condition,
        trouble,
        target,
        attempts,
    )


def event_of(row: Row) -> Event:
    number, tenant, topic, data, headers, created_at, expires_at, matched = row
    return Event(
        number, tenant, topic, bytes(data), bytes(headers), created_at, expires_at, bool(matched)
    )


def entry_of_promise(promise: Promise) -> Entry:
    """What a settled promise is in the journal of the execution that waits for it."""
    assert promise.seq is not None
    assert promise.settled_at is not None
    return Entry(
        promise.seq,
        _STEP_BY_KIND[promise.kind],
        promise.name,
        promise.fingerprint,
        promise.state is not PromiseState.RESOLVED,
        promise.body or b"null",
        1,
        promise.created_at,
        promise.settled_at,
    )


def _bytes_of(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
