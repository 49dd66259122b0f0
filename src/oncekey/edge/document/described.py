"""What the edge itself listens for, as operations of an OpenAPI document: kept answers by key and
by operation, webhooks, and the decision for other proxies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from oncekey.edge.document.contract import (
    DELIVERY,
    IDENTITY,
    REF,
    UPSTREAM,
    Part,
    responses_of,
    retention_of,
)
from oncekey.wire.openapi import header, key_parameter, replay_headers
from oncekey.wire.rule import Rule

ANY: Part = {"content": {"*/*": {"schema": {}}}}
"""A body of any kind."""

_RECOVERY = [
    *IDENTITY,
    "not-found",
    "outcome-unknown",
    "outcome-not-kept",
    "ledger-unavailable",
    "internal-error",
]
_RUNNING: Part = {
    "description": "It is running still; ask again after Retry-After seconds.",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["operation_id", "state"],
                "properties": {
                    "operation_id": {"type": "string"},
                    "state": {"const": "in_progress"},
                },
            }
        }
    },
}
_ORIGINAL = ("X-Original-Method", "X-Original-URI", "X-Forwarded-Method", "X-Forwarded-Uri")
_REFUSE: Part = {
    "name": "refuse",
    "in": "query",
    "description": "With 403, every refusal but a 401 is a 403, for proxies that know no others.",
    "schema": {"const": "403"},
}
_FORBIDDEN: Part = {
    "description": "With `refuse=403`: any of the refusals but a 401, with its own problem.",
    "content": {"application/problem+json": {"schema": REF}},
}
_DECISION = [
    *IDENTITY,
    "invalid-input",
    "not-found",
    "method-not-allowed",
    "idempotency-key-missing",
    "idempotency-key-invalid",
    "idempotency-key-prohibited",
    "identifier-missing",
    "internal-error",
]


class Described(NamedTuple):
    method: str
    path: str
    operation: Part
    """Without the parameters of its path."""


def recovery(path: str, what: str) -> Iterator[Described]:
    """The two ways to a kept answer; `what` names it."""
    kept: Part = {
        "description": "The stored answer, whatever its status.",
        "headers": replay_headers(),
    }
    responses = {"202": _RUNNING, "2XX": kept, **responses_of(_RECOVERY), "default": kept}
    common: Part = {"x-idempotency-policy": "PROHIBITED", "responses": responses}
    yield Described("GET", path, {"summary": f"Wait for the answer to {what}", **common})
    at_once = {"summary": f"See the answer to {what} without waiting", **common}
    yield Described("GET", f"{path}/output", at_once)


def operations() -> Iterator[Described]:
    return recovery("/api/v1/operations/{operation_id}", "an operation of one's own")


def webhook(kept: Mapping[str, float]) -> Described:
    operation: Part = {
        "summary": "Deliver a webhook",
        "description": "Called by the provider, which is known by its signature.",
        "security": [],
        "x-idempotency-policy": "REQUIRED_B",
        "x-idempotency-retention": retention_of("webhook", kept),
        "requestBody": ANY,
        "responses": {
            "200": {"description": "Handled, by this attempt or an earlier one."},
            **responses_of(["not-found", "internal-error", *DELIVERY, *UPSTREAM]),
        },
    }
    return Described("POST", "/api/v1/webhooks/{provider}/{webhook_id}", operation)


def decisions() -> Iterator[Described]:
    """For other proxies, which ask with either method and carry the bytes themselves."""
    told = {
        name: header("To send on, in place of what the client sent in it.")
        for name in ("Idempotency-Key", "X-Tenant-Id", "X-Project-Id", "X-Subject")
    }
    told["X-Idempotency-Policy"] = header("The policy of the route.")
    for method in ("GET", "POST"):
        operation: Part = {
            "summary": "Decide about a request that another proxy carries",
            "description": "The request is told in X-Original-Method and X-Original-URI, or in "
            "X-Forwarded-Method and X-Forwarded-Uri.",
            "parameters": [*map(_told_in, _ORIGINAL), _REFUSE, key_parameter(Rule())],
            "responses": {
                "200": {"description": "Let it through, with these headers.", "headers": told},
                **responses_of(_DECISION),
                "403": _FORBIDDEN,
            },
        }
        yield Described(method, "/edge/decide", operation)


def _told_in(name: str) -> Part:
    return {"name": name, "in": "header", "schema": {"type": "string"}}
