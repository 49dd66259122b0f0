"""Rows to records and back. The column order is the one of the view `oncekey_records`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from oncekey.core.model import Headers, Kind, Link, Outcome, Record, Ref
from oncekey.core.scope import Scope

decode_headers = msgspec.msgpack.Decoder(tuple[tuple[bytes, bytes], ...]).decode
encode_headers = msgspec.msgpack.Encoder().encode

# The number of the holder, and behind the record's columns the holder as far as it is known.
OWNER = 5
OWNER_NAME, OWNER_BOOT, OWNER_HEARTBEAT = 20, 21, 22


def record_of(row: Sequence[Any]) -> Record:
    (
        number, namespace, endpoint, key, fingerprint, owner, fence, request_id, retention,
        created_at, expires_at, workflow_id, task_id, promise_id,
        kind, status, headers, body, completed_at, outcome_expires_at,
    ) = row[:20]  # fmt: skip
    outcome = None
    if kind is not None:
        outcome = Outcome(Kind(kind), status, _headers_of(headers), bytes(body))
    return Record(
        number,
        Ref(Scope(namespace, endpoint), key),
        bytes(fingerprint),
        owner,
        fence,
        request_id,
        retention,
        created_at,
        expires_at if outcome is None else outcome_expires_at,
        completed_at,
        outcome,
        _link_of(workflow_id, task_id, promise_id),
    )


def _headers_of(packed: bytes) -> Headers:
    return decode_headers(packed) if packed else ()


def _link_of(workflow: str | None, task: str | None, promise: str | None) -> Link | None:
    if workflow is not None:
        return Link("workflow", workflow)
    if task is not None:
        return Link("task", task)
    return Link("promise", promise) if promise is not None else None
