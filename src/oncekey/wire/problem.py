"""Problem answers (RFC 9457). The only table of HTTP statuses."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from oncekey.core.errors import (
    InvalidInput,
    KeyConflict,
    NotFound,
    OnceKeyError,
    PromiseOver,
    StoreError,
    Unauthorized,
)
from oncekey.core.model import Headers

DOCS = "https://oncekey.dev/problems/"

# What the ledger answers, in front of any route.
_LEDGER: dict[str, tuple[int, str]] = {
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
# What the API answers beside it.
_API: dict[str, tuple[int, str]] = {
    "invalid-input": (400, "The request breaks a rule"),
    "request-key-invalid": (400, "The request key is malformed"),
    "value-unserialisable": (400, "The value is not JSON"),
    "condition-invalid": (400, "The condition cannot be used"),
    "schedule-invalid": (400, "The schedule cannot be used"),
    "unauthorized": (401, "Who is calling is not known"),
    "not-found": (404, "There is nothing here"),
    "name-unknown": (404, "There is no workflow or task of that name"),
    "method-not-allowed": (405, "The method is not allowed here"),
    "control-refused": (409, "The workflow cannot be controlled in this way"),
    "key-conflict": (409, "Another promise has this key"),
    "promise-over": (410, "The promise cannot be settled any more"),
    "payload-too-large": (413, "The value is too large to keep"),
    "internal-error": (500, "Something went wrong here"),
}
# What the edge answers beside both.
_EDGE: dict[str, tuple[int, str]] = {
    "identifier-missing": (400, "The delivery has no identifier"),
    "signature-invalid": (401, "The delivery is not signed as it must be"),
    "request-malformed": (400, "The request is no HTTP that can be read in one way only"),
    "request-timeout": (408, "The request did not come in time"),
    "request-head-too-large": (431, "The head of the request is too large"),
    "delivery-failed": (500, "What follows this delivery failed for good"),
    "upstream-unreachable": (502, "The service behind cannot be reached"),
    "upstream-uncertain": (502, "The service behind broke off"),
    "identity-unavailable": (503, "Who is calling cannot be found out now"),
    "secrets-unavailable": (503, "The delivery cannot be verified now"),
    "delivery-in-flight": (503, "This delivery is being handled"),
    "delivery-postponed": (503, "What follows this delivery cannot be done now"),
    "upstream-timeout": (504, "The service behind did not answer in time"),
}
_TABLE = _LEDGER | _API | _EDGE

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
    "unauthorized": "Send a header 'Authorization: Bearer …' with an API key or a token, or "
    "'X-API-Key: …' with an API key, once, and one that is neither expired nor revoked.",
    # The same for what does not exist and for what is somebody else's.
    "not-found": "Nothing of that address exists, or it is not yours. Check the path, the id, the "
    "key and the tenant.",
    "method-not-allowed": "Use one of the methods in the Allow header.",
    "identifier-missing": "Nothing was done. A delivery is known by the identifier its provider "
    "gives it, and this one has none.",
    # The same for every reason: whoever forges one learns nothing from it.
    "signature-invalid": "The signature is missing, wrong or too old for this webhook.",
    "request-malformed": "Nothing was run, and the connection is closed. Send HTTP/1.1 with one "
    "Host, with one Content-Length or 'Transfer-Encoding: chunked', and CR LF at the end of lines.",
    "request-timeout": "Nothing was run. Send the whole request again, faster.",
    "request-head-too-large": "Nothing was run, and the connection is closed. A head may have 128 "
    "lines, and 64 KiB in all of them.",
    "upstream-unreachable": "Nothing was sent to it. Send the same request again in a moment.",
    "upstream-uncertain": "It may have taken effect. Do not use a new key: send the same request "
    "again, or ask for its answer by its key, to learn what became of it.",
    "upstream-timeout": "It may have taken effect. Do not use a new key: send the same request "
    "again, or ask for its answer by its key, to learn what became of it.",
    "identity-unavailable": "Nothing was run. Send the same request again in a moment.",
    "secrets-unavailable": "Nothing was done. Deliver it again in a moment.",
    "delivery-in-flight": "Another attempt of this delivery is under way. Deliver it again later.",
    "delivery-postponed": "Nothing is lost: deliver it again, and it is tried again.",
    "delivery-failed": "Delivering it again does not help. Its key can be purged once the cause is "
    "mended; then it runs again.",
    "internal-error": "The request was not understood as it should have been; the log of the "
    "server says more. What it asked for may have been done: use the same key to try again.",
}

_RETRY_AFTER = {
    "request-in-progress": b"1",
    "ledger-unavailable": b"1",
    "claim-lost": b"0",
    "upstream-unreachable": b"1",
    "identity-unavailable": b"1",
    "secrets-unavailable": b"5",
    "delivery-in-flight": b"5",
    "delivery-postponed": b"5",
}
_NO_ANSWER = (
    "The service behind was asked, and its answer did not come. It will not be asked again by "
    "itself; find out there whether it took effect, or ask an operator to purge the key."
)
_FAILED = "The service behind ended the operation with an error."
# How operators end a call.
_ENDED = frozenset({"canceled", "cancelled", "killed"})
_CHALLENGE = (b"www-authenticate", b'Bearer realm="oncekey"')


class Response(NamedTuple):
    """What goes out: header names in lower case."""

    status: int
    headers: Headers
    body: bytes


def codes() -> dict[str, tuple[int, str]]:
    """Every problem type with its status and title."""
    return dict(_TABLE)


def ledger_codes() -> dict[str, tuple[int, str]]:
    """Those that the ledger may answer with, whatever it protects."""
    return dict(_LEDGER)


def problem(
    code: str,
    detail: str | None = None,
    *,
    operation_id: str | None = None,
    status: int = 0,
    **others: str,
) -> Response:
    """`others` are members of this type of problem."""
    default_status, title = _TABLE[code]
    status = status or default_status
    page = DOCS + code
    members: dict[str, object] = {
        "type": page,
        "title": title,
        "status": status,
        "detail": detail or _DETAILS[code],
        **others,
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
    if code == "unauthorized":
        headers.append(_CHALLENGE)
    if operation_id:
        headers.append((b"x-operation-id", operation_id.encode()))
    return Response(status, tuple(headers), body)


def problem_of(error: OnceKeyError) -> Response:
    """The answer to an error; everything a store can raise means: not run, try again."""
    match error:
        case KeyConflict(existing_promise_id=other):
            return problem(error.code, str(error), existing_promise_id=other)
        case PromiseOver(state=state):
            return problem(error.code, str(error), state=state)
        case NotFound(code="not-found"):
            # Whatever the message says: it may tell what exists from what does not.
            return problem("not-found")
        case _ if error.code in _EDGE or isinstance(error, Unauthorized):
            # Why a caller is not believed, and what lies behind, is told to operators only.
            return problem(error.code)
        case InvalidInput() if error.code not in _TABLE:
            return problem("invalid-input", str(error))
        case StoreError():
            return problem("ledger-unavailable")
        case _ if error.code in _TABLE:
            return problem(error.code, str(error))
        case _:
            return problem("ledger-unavailable")


def not_allowed(methods: Iterable[str]) -> Response:
    """Only these methods are answered here."""
    refusal = problem("method-not-allowed")
    allow = (b"allow", ", ".join(sorted(methods)).encode())
    return refusal._replace(headers=(*refusal.headers, allow))


def forbidden(answer: Response) -> Response:
    """The same answer for whoever knows two refusals only: 401 and 403."""
    return answer if answer.status < 400 or answer.status == 401 else answer._replace(status=403)


def outcome_unknown_to_provider(operation_id: str | None = None) -> Response:
    """A conflict would make some providers drop the delivery."""
    return problem("outcome-unknown", operation_id=operation_id, status=500)


def outcome_unknown_behind(
    operation_id: str | None = None, *, to_provider: bool = False
) -> Response:
    """No process died here: the service behind was asked, and broke off."""
    status = 500 if to_provider else 0
    return problem("outcome-unknown", _NO_ANSWER, operation_id=operation_id, status=status)


def failed_in_service(status: int, message: str) -> Response:
    """A handler behind ended with an error. What it says of the request is told; what broke inside
    it, or who ended it, is not."""
    told = 400 <= status < 500 and message not in _ENDED
    shown = status if 400 <= status < 600 else 500
    return problem("terminal-error", message if told and message else _FAILED, status=shown)


def ran_but_not_stored(operation_id: str) -> Response:
    """The handler ran and the store went away under it: no answer may leave that was not kept."""
    detail = (
        "The operation ran, but its outcome could not be stored in time. It is stored as soon as "
        "the ledger is back; send the same request again to get it."
    )
    return problem("ledger-unavailable", detail, operation_id=operation_id)
