"""The only table of gRPC statuses, and what of an error is told beside its message."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from grpc import StatusCode

from oncekey.core.errors import KeyConflict, OnceKeyError, PromiseOver, StoreError

CODE = "oncekey-code"
EXISTING_PROMISE_ID = "existing-promise-id"
PROMISE_STATE = "promise-state"

_NOBODY = "unauthorized"
_FAULT = "internal-error"

_TABLE: dict[str, StatusCode] = {
    _NOBODY: StatusCode.UNAUTHENTICATED,
    "invalid-input": StatusCode.INVALID_ARGUMENT,
    "idempotency-key-invalid": StatusCode.INVALID_ARGUMENT,
    "request-key-invalid": StatusCode.INVALID_ARGUMENT,
    "scope-invalid": StatusCode.INVALID_ARGUMENT,
    "retention-unknown": StatusCode.INVALID_ARGUMENT,
    "value-unserialisable": StatusCode.INVALID_ARGUMENT,
    "payload-too-large": StatusCode.INVALID_ARGUMENT,
    "condition-invalid": StatusCode.INVALID_ARGUMENT,
    "schedule-invalid": StatusCode.INVALID_ARGUMENT,
    "not-found": StatusCode.NOT_FOUND,
    "name-unknown": StatusCode.NOT_FOUND,
    "key-conflict": StatusCode.ALREADY_EXISTS,
    "request-in-progress": StatusCode.ABORTED,
    "claim-lost": StatusCode.ABORTED,
    "refused": StatusCode.FAILED_PRECONDITION,
    "idempotency-key-reused": StatusCode.FAILED_PRECONDITION,
    "outcome-unknown": StatusCode.FAILED_PRECONDITION,
    "outcome-not-kept": StatusCode.FAILED_PRECONDITION,
    "control-refused": StatusCode.FAILED_PRECONDITION,
    "promise-over": StatusCode.FAILED_PRECONDITION,
    "promise-rejected": StatusCode.FAILED_PRECONDITION,
    "promise-timed-out": StatusCode.FAILED_PRECONDITION,
    "promise-cancelled": StatusCode.FAILED_PRECONDITION,
    "call-failed": StatusCode.FAILED_PRECONDITION,
    "step-failed": StatusCode.FAILED_PRECONDITION,
    "terminal-error": StatusCode.FAILED_PRECONDITION,
    "non-deterministic": StatusCode.FAILED_PRECONDITION,
    "store": StatusCode.UNAVAILABLE,
    "ledger-unavailable": StatusCode.UNAVAILABLE,
    "ledger-closed": StatusCode.UNAVAILABLE,
    "schema-outdated": StatusCode.UNAVAILABLE,
    "schema-too-new": StatusCode.UNAVAILABLE,
    # Those of the edge and of webhooks, which no call of gRPC can meet today.
    "signature-invalid": StatusCode.UNAUTHENTICATED,
    "identifier-missing": StatusCode.INVALID_ARGUMENT,
    "identity-unavailable": StatusCode.UNAVAILABLE,
    "secrets-unavailable": StatusCode.UNAVAILABLE,
    "upstream": StatusCode.UNAVAILABLE,
    "upstream-unreachable": StatusCode.UNAVAILABLE,
    "upstream-uncertain": StatusCode.UNKNOWN,
    "upstream-timeout": StatusCode.DEADLINE_EXCEEDED,
    "configuration": StatusCode.INTERNAL,
    "error": StatusCode.INTERNAL,
    _FAULT: StatusCode.INTERNAL,
}

# Trailers share the 8 KiB that a client takes of metadata, and text is percent-encoded on its way.
_MAX_ENCODED = 2048
_PRINTABLE = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")
_MESSAGES = {
    _NOBODY: "who is calling is not known; send metadata 'authorization: Bearer ok_...' with an "
    "API key that is neither expired nor revoked",
    _FAULT: "something went wrong here, and the log of the server says what; it may have been "
    "done: use the same key to try again",
    # Whoever asks for what is another tenant's gets, letter by letter, what the unknown gets.
    "not-found": "there is nothing of that id, key or token here; check it, and that the tenant "
    "is yours",
}
_AWAY = "the store cannot be used now; send the same call with the same key again in a moment"


class Refusal(NamedTuple):
    """How a call ends that is not answered."""

    status: StatusCode
    message: str
    trailers: tuple[tuple[str, str], ...]


def codes() -> dict[str, StatusCode]:
    """Every error code with its status."""
    return dict(_TABLE)


def refusal_of(error: OnceKeyError) -> Refusal:
    trailers = [(CODE, error.code)]
    match error:
        case KeyConflict(existing_promise_id=promise):
            trailers += _told(EXISTING_PROMISE_ID, promise)
        case PromiseOver(state=state):
            trailers += _told(PROMISE_STATE, state)
        case _:
            pass
    status = _TABLE.get(error.code, StatusCode.INTERNAL)
    return Refusal(status, _message_of(error), tuple(trailers))


def unauthenticated() -> Refusal:
    return Refusal(_TABLE[_NOBODY], _MESSAGES[_NOBODY], ((CODE, _NOBODY),))


def fault() -> Refusal:
    """What is told of a bug: nothing that was not meant to be read."""
    return Refusal(_TABLE[_FAULT], _MESSAGES[_FAULT], ((CODE, _FAULT),))


def _message_of(error: OnceKeyError) -> str:
    if isinstance(error, StoreError):
        return _AWAY
    return _MESSAGES.get(error.code) or _bounded(str(error))


def _told(name: str, value: str) -> list[tuple[str, str]]:
    """Metadata is printable ASCII; half a value would be a wrong one."""
    encoded = quote(value, safe=_PRINTABLE, errors="replace")
    return [(name, encoded)] if len(encoded) <= _MAX_ENCODED else []


def _bounded(message: str) -> str:
    # It may repeat what a caller sent, and none of its characters is shorter when it is encoded.
    message = message[:_MAX_ENCODED]
    while len(quote(message, safe=_PRINTABLE, errors="replace")) > _MAX_ENCODED:
        message = message[: len(message) * 3 // 4]
    return message
