"""What every change by an admin has in common: a line in the audit feed, a key of its own to the
engine, and secrets that are told once."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from oncekey.api.admin.means import Means
from oncekey.api.endpoint import Call
from oncekey.api.requests import MAX_BODY
from oncekey.core.errors import LedgerClosed, StoreError
from oncekey.durable.shapes import Shape, json_of
from oncekey.wire.exchange import outcome_of
from oncekey.wire.problem import Response, ran_but_not_stored
from oncekey.wire.rule import Rule

RULE = Rule(max_request_body=MAX_BODY, in_flight="attach", attach_timeout=10.0)
"""A change is made once, however often its request is sent with the same key. One that is sent
again meanwhile, as by a double click, is answered as the first is."""

# Together they must fit into an entry, also where every character is escaped.
_LONGEST_DETAIL = 200


BY_ADMIN = "admin-"
"""Begins the request keys of admins."""


def means_of(call: Call) -> Means:
    assert call.means is not None
    return call.means


async def note(
    call: Call, action: str, target: str, *, tenant: str | None = None, **details: Any
) -> None:
    """Write down what is done. Before it is, where it cannot be taken back: nothing is changed that
    is not in the feed."""
    assert call.caller is not None
    shown = {
        name: value[:_LONGEST_DETAIL] if isinstance(value, str) else value
        for name, value in details.items()
    }
    await means_of(call).audit.record(
        f"admin:{call.caller.key_id}",
        action,
        target,
        tenant=tenant,
        idempotency_key=call.key,
        **shown,
    )


def request_key_of(call: Call) -> str:
    """Which request this is to the engine. Keys of callers are apart: theirs are not digests."""
    assert call.caller is not None
    known_by = call.key or secrets.token_hex(16)
    digest = sha256(f"{call.caller.key_id}:{known_by}".encode()).hexdigest()
    return f"{BY_ADMIN}{call.caller.key_id}-{digest}"


async def told_once(call: Call, reply: Callable[[bytes], Response], shape: Shape) -> Response:
    """The answer, with its `secret` here and never again: what is kept for retries has none."""
    answer = reply(json_of(shape))
    if call.claim is None:
        return answer
    kept = reply(json_of({**shape, "secret": None}))
    try:
        await call.claim.asettle(outcome_of(kept.status, kept.headers, kept.body, RULE))
    except (StoreError, LedgerClosed):
        return ran_but_not_stored(call.claim.operation_id)
    return answer
