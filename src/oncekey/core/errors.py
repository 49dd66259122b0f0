"""Every error OnceKey raises. HTTP statuses live in `wire/problem.py`, never here.

OnceKeyError
├── InvalidInput
│   ├── KeyInvalid            the key breaks the grammar; the message says which rule
│   ├── RequestKeyInvalid     the key of a control operation breaks its grammar
│   ├── ScopeInvalid          a tenant, project or subject breaks its grammar
│   ├── RetentionUnknown      no retention class has that name
│   ├── ValueUnserialisable   a result that JSON cannot hold
│   ├── PayloadTooLarge       a value beyond its limit; the message says which and how large
│   ├── ConditionInvalid      a CEL expression that cannot be used
│   ├── ScheduleInvalid       a cron line or interval that cannot be used
│   └── ConfigurationError    a setting that cannot work
├── NotFound                  nothing of that id, key or token, or not the caller's
│   └── NameUnknown           no workflow or task of that name
├── Refused
│   ├── InProgress            another caller holds the claim
│   ├── KeyReused             same key, other fingerprint
│   ├── OutcomeUnknown        the holder died and the claim may not be run again
│   ├── OutcomeNotKept        it ran, but its answer was too large or streamed
│   ├── ClaimLost             a late writer: someone took the claim over
│   ├── ControlRefused        a control key was used before, or the action does not fit the state
│   └── PromiseOver           it expired, timed out or was cancelled
├── StoreError
│   ├── StoreUnavailable      cannot be reached, or cannot commit
│   ├── SchemaOutdated        tables are missing or old: run `oncekey migrate`
│   └── SchemaTooNew          tables are newer than this code
├── Unauthorized              who is calling is not known
├── IdentityUnavailable       who is calling cannot be found out at the moment
├── SignatureInvalid          a delivery that its provider did not sign, or not lately
├── IdentifierMissing         a delivery without the identifier that would be its key
├── SecretsUnavailable        the secrets of webhooks cannot be read or opened
├── UpstreamError
│   ├── UpstreamUnreachable   nothing was sent: as if it had not been asked
│   └── UpstreamUncertain     it was asked, and how it ended is not known
│       └── UpstreamTimeout   it was asked, and did not answer in time
├── LedgerClosed              the ledger was closed
├── NonDeterministic          the code no longer fits the journal
└── TerminalError             raised by handlers: final, stored, never retried
    ├── PromiseRejected       what was waited for was rejected
    ├── PromiseTimedOut       what was waited for did not come in time
    ├── PromiseCancelled      what was waited for was cancelled
    ├── KeyConflict           another promise has the key
    ├── CallFailed            the workflow or task that was called failed
    └── StepFailed            a step is out of attempts
"""

from __future__ import annotations


class OnceKeyError(Exception):
    """Base of all errors; the docstring of each is its default message."""

    code = "error"
    retryable = False

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or self.code).splitlines()[0])


class InvalidInput(OnceKeyError):
    """The input breaks a rule."""

    code = "invalid-input"


class KeyInvalid(InvalidInput):
    """The key breaks the grammar."""

    code = "idempotency-key-invalid"

    def __init__(self, message: str | None = None, reason: str = "charset") -> None:
        super().__init__(message)
        self.reason = reason
        """The rule in a word: empty, length, charset, prefix, quotes."""


class RequestKeyInvalid(InvalidInput):
    """A request key is a string, not empty after trimming, of at most 200 bytes."""

    code = "request-key-invalid"


class ScopeInvalid(InvalidInput):
    """A part of the scope breaks its grammar."""

    code = "scope-invalid"


class RetentionUnknown(InvalidInput):
    """There is no retention class of that name."""

    code = "retention-unknown"


class ValueUnserialisable(InvalidInput):
    """The result cannot be kept: values must be JSON."""

    code = "value-unserialisable"


class PayloadTooLarge(InvalidInput):
    """The value is larger than durable work may keep."""

    code = "payload-too-large"


class ConditionInvalid(InvalidInput):
    """The CEL expression cannot be used."""

    code = "condition-invalid"


class ScheduleInvalid(InvalidInput):
    """The schedule cannot be used."""

    code = "schedule-invalid"


class ConfigurationError(InvalidInput):
    """The configuration cannot work."""

    code = "configuration"


class NotFound(OnceKeyError):
    """There is nothing of that id, key or token."""

    code = "not-found"


class NameUnknown(NotFound):
    """There is no workflow or task of that name."""

    code = "name-unknown"


class Refused(OnceKeyError):
    """The ledger refused to run the operation."""

    code = "refused"


class InProgress(Refused):
    """Another caller is running this operation; try again shortly."""

    code = "request-in-progress"
    retryable = True


class KeyReused(Refused):
    """This key was first used with another input; use a new key for a new operation."""

    code = "idempotency-key-reused"


class OutcomeUnknown(Refused):
    """The process that ran this operation died; whether it took effect is not known."""

    code = "outcome-unknown"


class OutcomeNotKept(Refused):
    """The operation ran, but its answer was too large or streamed and was not kept."""

    code = "outcome-not-kept"


class ClaimLost(Refused):
    """The claim was taken over by someone else; this outcome changes nothing."""

    code = "claim-lost"


class ControlRefused(Refused):
    """The control operation was refused."""

    code = "control-refused"


class PromiseOver(Refused):
    """The promise cannot be settled any more; `state` says why."""

    code = "promise-over"

    def __init__(self, message: str | None = None, *, state: str = "expired") -> None:
        super().__init__(message or f"the promise is {state.replace('_', ' ')}")
        self.state = state


class StoreError(OnceKeyError):
    """The store failed."""

    code = "store"


class StoreUnavailable(StoreError):
    """The store cannot be reached or cannot commit."""

    code = "ledger-unavailable"
    retryable = True


class SchemaOutdated(StoreError):
    """The tables are missing or old; run `oncekey migrate`."""

    code = "schema-outdated"


class SchemaTooNew(StoreError):
    """The tables were made by a newer OnceKey; upgrade this process."""

    code = "schema-too-new"


class Unauthorized(OnceKeyError):
    """Who is calling is not known."""

    code = "unauthorized"


class IdentityUnavailable(OnceKeyError):
    """Who is calling cannot be found out at the moment."""

    code = "identity-unavailable"
    retryable = True


class SignatureInvalid(OnceKeyError):
    """The delivery is not signed by its provider, or not lately."""

    code = "signature-invalid"


class IdentifierMissing(OnceKeyError):
    """The delivery has no identifier."""

    code = "identifier-missing"


class SecretsUnavailable(OnceKeyError):
    """The secrets of webhooks cannot be read at the moment."""

    code = "secrets-unavailable"
    retryable = True


class UpstreamError(OnceKeyError):
    """The upstream did not answer."""

    code = "upstream"


class UpstreamUnreachable(UpstreamError):
    """The upstream cannot be reached; nothing was sent."""

    code = "upstream-unreachable"
    retryable = True


class UpstreamUncertain(UpstreamError):
    """The upstream was asked and broke off; whether it took effect is not known."""

    code = "upstream-uncertain"


class UpstreamTimeout(UpstreamUncertain):
    """The upstream was asked and did not answer in time; whether it took effect is not known."""

    code = "upstream-timeout"


class LedgerClosed(OnceKeyError):
    """The ledger is closed; open a new one."""

    code = "ledger-closed"
    retryable = True


class NonDeterministic(OnceKeyError):
    """The code of a workflow no longer fits its journal."""

    code = "non-deterministic"


class TerminalError(OnceKeyError):
    """The operation failed for good; this failure is its outcome and is replayed.

    `status` is used when the operation answers HTTP; it must be 400–599.
    """

    code = "terminal-error"

    def __init__(self, message: str | None = None, *, status: int = 500) -> None:
        super().__init__(message)
        if not 400 <= status <= 599:
            raise ConfigurationError(f"TerminalError status must be 400-599, not {status}")
        self.status = status


class PromiseRejected(TerminalError):
    """The promise was rejected; `reason` is what it was rejected with."""

    code = "promise-rejected"

    def __init__(self, message: str | None = None, *, reason: object = None) -> None:
        super().__init__(message)
        self.reason = reason


class PromiseTimedOut(TerminalError):
    """The promise was not settled in time."""

    code = "promise-timed-out"


class PromiseCancelled(TerminalError):
    """The promise was cancelled."""

    code = "promise-cancelled"


class KeyConflict(TerminalError):
    """Another promise has this key."""

    code = "key-conflict"

    def __init__(self, message: str | None = None, *, existing_promise_id: str = "") -> None:
        super().__init__(message or f"the key belongs to the promise {existing_promise_id}")
        self.existing_promise_id = existing_promise_id


class CallFailed(TerminalError):
    """The workflow or task that was called failed."""

    code = "call-failed"


class StepFailed(TerminalError):
    """A step failed, and is out of attempts."""

    code = "step-failed"
