"""Failures that were written down, back to the exceptions they were."""

from __future__ import annotations

from typing import Any

from oncekey.core.errors import (
    CallFailed,
    KeyConflict,
    KeyReused,
    OnceKeyError,
    PromiseCancelled,
    PromiseRejected,
    PromiseTimedOut,
    StepFailed,
    TerminalError,
)
from oncekey.durable.failure import Failure, decode_failure

_MAX_MESSAGE = 4000
_KINDS = (PromiseTimedOut, PromiseCancelled, CallFailed, StepFailed, KeyReused)
_PLAIN: dict[str, type[OnceKeyError]] = {error.code: error for error in _KINDS}


def rejection_of(reason: Any) -> Failure:
    """The failure of a promise that is rejected with `reason`, which may be any JSON."""
    text = reason.get("message") if isinstance(reason, dict) else reason
    message = text if isinstance(text, str) and text else "the promise was rejected"
    return Failure(PromiseRejected.code, message[:_MAX_MESSAGE], reason)


def error_of(body: bytes | None) -> OnceKeyError:
    """What to raise for a failure in a journal or in a result."""
    failure = decode_failure(body)
    match failure.code:
        case PromiseRejected.code:
            return PromiseRejected(failure.message, reason=failure.data)
        case KeyConflict.code:
            return KeyConflict(failure.message, existing_promise_id=str(failure.data))
        case code if code in _PLAIN:
            return _PLAIN[code](failure.message)
        case _:
            error = TerminalError(failure.message, status=failure.status or 500)
            error.code = failure.code
            return error


def call_failure_of(body: bytes | None, called: str) -> CallFailed:
    """What a caller is told of a workflow or task that did not succeed."""
    failure = decode_failure(body)
    return CallFailed(f"{called} failed: {failure.message} ({failure.code})")
