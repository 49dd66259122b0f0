"""What a protected route adds to its operation in an OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oncekey.core.key import MAX_KEY_LENGTH
from oncekey.wire.problem import codes, ledger_codes
from oncekey.wire.rule import Rule

_PATTERN = r"^(?!t-)[A-Za-z0-9._~\-]+$"
PROBLEM: dict[str, Any] = {
    "title": "Problem",
    "description": "A problem document (RFC 9457).",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "operation_id": {"type": "string"},
    },
}


def operation_parts(rule: Rule, success: str) -> dict[str, Any]:
    """Parameters and responses; `success` is the status under which replays are described."""
    if rule.key == "ignored":
        return {"responses": {}}
    responses: dict[str, Any] = {success: {"headers": replay_headers()}}
    for status, types in by_status(codes_of(rule)).items():
        responses[str(status)] = problem_response(status, types)
    parts: dict[str, Any] = {"responses": responses}
    if rule.key != "prohibited":
        parts["parameters"] = [key_parameter(rule)]
    return parts


def key_parameter(rule: Rule) -> dict[str, Any]:
    return {
        "name": "Idempotency-Key",
        "in": "header",
        "required": rule.key == "required",
        "description": "Names this operation. Send a value that is unique to it, such as a UUID, "
        "and the same value with every retry: the operation then runs once, and every retry gets "
        "the answer of the first request.",
        "schema": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_KEY_LENGTH,
            "pattern": _PATTERN,
        },
    }


def replay_headers() -> dict[str, Any]:
    return {
        "Idempotent-Replayed": header(
            "`true` when this is the stored answer to an earlier request"
        ),
        "Original-Request-Id": header("On a replay: the request that was answered first"),
        "X-Operation-Id": header("The operation that the key stands for"),
        "Idempotency-Expires": header("On a replay: when the key is forgotten", "date-time"),
        "Idempotency-Stored": header("`false` when the answer could not be kept for replays"),
    }


def header(description: str, form: str = "") -> dict[str, Any]:
    schema = {"type": "string", "format": form} if form else {"type": "string"}
    return {"description": description, "schema": schema}


def codes_of(rule: Rule) -> list[str]:
    """The problems the ledger can answer with on a route of this rule."""
    unused = _unused(rule)
    return [code for code in ledger_codes() if code not in unused]


def by_status(found: Iterable[str]) -> dict[int, list[str]]:
    """Codes of problems by their status, each in the order of the table."""
    wanted, known = set(found), codes()
    ordered: dict[int, list[str]] = {}
    for code in sorted(wanted, key=list(known).index):
        ordered.setdefault(known[code][0], []).append(code)
    return dict(sorted(ordered.items()))


def _unused(rule: Rule) -> set[str]:
    # What a handler raises as its own failure has a status of its own choosing.
    unused = {"terminal-error"}
    if rule.key != "required":
        unused.add("idempotency-key-missing")
    if rule.key == "prohibited":
        return set(ledger_codes()) - {"idempotency-key-prohibited"}
    if rule.takeover == "rerun":
        unused.add("outcome-unknown")
    return unused | {"idempotency-key-prohibited"}


def problem_response(
    status: int, types: list[str], schema: dict[str, Any] = PROBLEM
) -> dict[str, Any]:
    titles = dict(codes())
    listed = "; ".join(f"`{code}`: {titles[code][1]}" for code in types)
    response: dict[str, Any] = {
        "description": listed,
        "content": {"application/problem+json": {"schema": schema}},
    }
    if status in {409, 502, 503}:
        response["headers"] = {"Retry-After": header("Seconds to wait before trying again")}
    return response
