"""Problem answers (RFC 9457). The only table of HTTP statuses."""

from __future__ import annotations

import json
from typing import NamedTuple

from oncekey.core.errors import OnceKeyError, StoreError
from oncekey.core.model import Headers

DOCS = "https://oncekey.dev/problems/"

_TABLE: dict[str, tuple[int, str]] = {
    "idempotency-key-missing": (400, "An Idempotency-Key is required here"),
    "idempotency-key-invalid": (400, "The Idempotency-Key is malformed"),
    "idempotency-key-prohibited": (400, "An Idempotency-Key is not allowed here"),
    "request-incomplete": (400, "The request ended before its body did"),
    "request-in-progress": (409, "A request with this key is still running"),
    "outcome-unknown": (409, "Whether the first request took effect is not known"),
    "outcome-not-kept": (409, "The request ran, but its answer was not kept"),
    "claim-lost": (409, "Another request took this one over"),
    "request-too-large": (413, "The request body is too large"),
    "idempotency-key-reused": (422, "This key was used with another request"),
    "terminal-error": (500, "The operation failed for good"),
    "ledger-unavailable": (503, "The idempotency ledger cannot be reached"),
}

_DETAILS = {
    "idempotency-key-missing": "Send a header 'Idempotency-Key' with a value that is unique to "
    "this operation, such as a UUID, and send it again with every retry.",
    "idempotency-key-prohibited": "Leave the Idempotency-Key header out of this request.",
    "request-incomplete": "Nothing was run. Send the request again, whole.",
    "request-in-progress": "Wait for Retry-After seconds, then send the same request again.",
    "outcome-unknown": "The process that ran it died. It will not be run again by itself; find out "
    "whether it took effect, or ask an operator to purge the key.",
    "outcome-not-kept": "It was streamed or too large to keep. It will not be run twice; read the "
    "resource it made instead.",
    "claim-lost": "This request was too slow and another one with the same key took over. Send it "
    "again to get the answer that was kept.",
    "request-too-large": "Requests with an Idempotency-Key are bounded in size on this route.",
    "idempotency-key-reused": "The key belongs to a request with another method, path, query or "
    "body. Use a new key for a new operation.",
    "ledger-unavailable": "Nothing was run. Send the same request again in a moment.",
}

_RETRY_AFTER = {"request-in-progress": b"1", "ledger-unavailable": b"1", "claim-lost": b"0"}


class Response(NamedTuple):
    """What goes out: header names in lower case."""

    status: int
    headers: Headers
    body: bytes


def codes() -> dict[str, tuple[int, str]]:
    """Every problem type with its status and title."""
    return dict(_TABLE)


def problem(
    code: str, detail: str | None = None, *, operation_id: str | None = None, status: int = 0
) -> Response:
    default_status, title = _TABLE[code]
    status = status or default_status
    page = DOCS + code
    members = {
        "type": page,
        "title": title,
        "status": status,
        "detail": detail or _DETAILS[code],
    }
    if operation_id:
        members["operation_id"] = operation_id
    body = json.dumps(members, ensure_ascii=False).encode()
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        (b"link", f'<{page}>; rel="describedby"'.encode()),
        (b"cache-control", b"no-store"),
    ]
    if code in _RETRY_AFTER:
        headers.append((b"retry-after", _RETRY_AFTER[code]))
    if operation_id:
        headers.append((b"x-operation-id", operation_id.encode()))
    return Response(status, tuple(headers), body)


def problem_of(error: OnceKeyError) -> Response:
    """The answer to an error; everything a store can raise means: not run, try again."""
    if isinstance(error, StoreError) or error.code not in _TABLE:
        return problem("ledger-unavailable")
    return problem(error.code, str(error))


def ran_but_not_stored(operation_id: str) -> Response:
    """The handler ran and the store went away under it: no answer may leave that was not kept."""
    detail = (
        "The operation ran, but its outcome could not be stored in time. It is stored as soon as "
        "the ledger is back; send the same request again to get it."
    )
    return problem("ledger-unavailable", detail, operation_id=operation_id)
