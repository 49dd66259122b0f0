"""What an answer means for an intent: it is known now, or to be asked again, or there is no use."""

from __future__ import annotations

from typing import NamedTuple

from oncekey.client import errors
from oncekey.client.answer import Answer
from oncekey.client.backoff import seconds_in
from oncekey.client.dialect import Dialect


class Known(NamedTuple):
    """This is the outcome."""


class Again(NamedTuple):
    """Send the same again."""

    reason: str
    after: float | None = None
    """Seconds that the server asks for."""
    running: bool = False
    """Another attempt of it is under way there."""


class Stop(NamedTuple):
    """Sending it again does not help."""

    error: type[errors.ClientError]
    final: bool
    """Whether there is nothing left to wait for."""


Verdict = Known | Again | Stop

_RUNNING = frozenset({"request-in-progress", "claim-lost", "idempotency_key_in_use"})
_STOPS = {
    "idempotency-key-reused": Stop(errors.KeyReused, final=True),
    "idempotency_error": Stop(errors.KeyReused, final=True),
    "outcome-unknown": Stop(errors.OutcomeUnknown, final=False),
    "outcome-not-kept": Stop(errors.OutcomeNotKept, final=True),
    "idempotency-key-missing": Stop(errors.KeyRefused, final=False),
    "idempotency-key-invalid": Stop(errors.KeyRefused, final=False),
    "idempotency-key-prohibited": Stop(errors.KeyRefused, final=False),
}
_MOVED = frozenset({301, 302, 307, 308})
_LATER = frozenset({408, 425, 429})


def verdict_of(answer: Answer, dialect: Dialect, now: float) -> Verdict:
    """`now` is the time of day, for a `Retry-After` that names one."""
    status, code = answer.status_code, answer.code
    after = seconds_in(answer.headers.get("retry-after", ""), now)
    if status < 500 and code in _STOPS:
        return _STOPS[code]
    if answer.replayed or code == "terminal-error":
        # Stored by the server, whatever it is: it would answer so again.
        return Known()
    if status in _MOVED:
        return Stop(errors.Redirected, final=False)
    if status in {401, 403}:
        return Stop(errors.CredentialsRefused, final=False)
    told = answer.headers.get(dialect.should_retry, "").lower() if dialect.should_retry else ""
    if status < 400 or status == 422 or told == "false":
        return Known()
    if status == 409 and (
        code in _RUNNING or after is not None or dialect.conflicts == "retry" or told == "true"
    ):
        return Again("in progress", after, running=True)
    if status in _LATER or status >= 500 or told == "true":
        return Again(f"status {status}", after)
    return Known()
