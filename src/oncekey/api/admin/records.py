"""Records of the ledger as JSON: what was asked with a key, and what became of it."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from oncekey.core.model import Outcome, Record, State
from oncekey.core.ports import Found
from oncekey.durable.shapes import Shape, time_of
from oncekey.wire.exchange import shown

MOST_SHOWN = 64 << 10
"""Bytes of a stored body."""


def shape_of_key(found: Found) -> Shape:
    """One line of a list: everything but the answer."""
    record, outcome = found.record, found.record.outcome
    scope = record.ref.scope
    return {
        "operation_id": record.operation_id,
        "key": record.ref.key,
        "endpoint": scope.endpoint,
        "namespace": scope.namespace,
        "tenant": tenant_of(scope.namespace),
        "state": record.state.name.lower(),
        "holder": _holder_of(found),
        "attempts": record.attempts,
        "request_id": record.request_id or None,
        "retention": record.retention,
        "status": None if outcome is None else outcome.status or None,
        "created_at": time_of(record.created_at),
        "completed_at": time_of(record.completed_at),
        "expires_at": None if outcome is None else time_of(record.expires_at),
        "stands_for": None if record.link is None else record.link._asdict(),
    }


def shape_of_record(found: Found, state: str | None = None) -> Shape:
    """`state` is that of what the key stands for."""
    record = found.record
    return {
        **shape_of_key(found),
        "stands_for": None if record.link is None else {**record.link._asdict(), "state": state},
        "outcome": None if record.outcome is None else _shape_of_outcome(record.outcome),
        "timeline": _timeline_of(found),
    }


def _holder_of(found: Found) -> str | None:
    if found.record.state is not State.IN_PROGRESS:
        return None
    return "lapsed" if found.lapsed else "alive"


def tenant_of(namespace: str) -> str | None:
    """Whose it is; None for a namespace of another form, as applications may use one."""
    parts = namespace.removeprefix("t-").split(":", 2)
    return parts[0] if namespace.startswith("t-") and len(parts) == 3 else None


def _shape_of_outcome(outcome: Outcome) -> Shape:
    head = outcome.body[:MOST_SHOWN]
    return {
        "kind": outcome.kind.name.lower(),
        "status": outcome.status or None,
        "headers": [
            [name.decode("latin-1"), value.decode("latin-1")] for name, value in shown(outcome)
        ],
        **_shown(head, cut=len(head) < len(outcome.body)),
        "bytes": len(outcome.body),
        "whole": len(head) == len(outcome.body),
    }


def _shown(head: bytes, *, cut: bool) -> dict[str, str]:
    try:
        return {"body": head.decode()}
    except UnicodeDecodeError as error:
        # A character that is cut in two at the end is not the body's fault.
        if cut and error.start > len(head) - 4:
            return {"body": head[: error.start].decode()}
        return {"body_base64": b64encode(head).decode()}


def _timeline_of(found: Found) -> list[dict[str, Any]]:
    record: Record = found.record
    happened = [(record.created_at, "claimed")]
    if record.outcome is not None and record.completed_at is not None:
        happened += [(record.completed_at, record.state.name.lower())]
        happened += [(record.expires_at, "expires")]
    return [{"at": time_of(at), "what": what} for at, what in happened]
