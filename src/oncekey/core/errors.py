"""Every error OnceKey raises. HTTP statuses live in `wire/problem.py`, never here.

OnceKeyError
├── InvalidInput
│   ├── KeyInvalid            the key breaks the grammar; the message says which rule
│   ├── ScopeInvalid          a tenant, project or subject breaks its grammar
│   ├── RetentionUnknown      no retention class has that name
│   ├── ValueUnserialisable   a result that JSON cannot hold
│   └── ConfigurationError    a setting that cannot work
├── Refused
│   ├── InProgress            another caller holds the claim
│   ├── KeyReused             same key, other fingerprint
│   ├── OutcomeUnknown        the holder died and the claim may not be run again
│   ├── OutcomeNotKept        it ran, but its answer was too large or streamed
│   └── ClaimLost             a late writer: someone took the claim over
├── StoreError
│   ├── StoreUnavailable      cannot be reached, or cannot commit
│   ├── SchemaOutdated        tables are missing or old: run `oncekey migrate`
│   └── SchemaTooNew          tables are newer than this code
├── LedgerClosed              the ledger was closed
└── TerminalError             raised by handlers: final, stored, never retried
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


class ScopeInvalid(InvalidInput):
    """A part of the scope breaks its grammar."""

    code = "scope-invalid"


class RetentionUnknown(InvalidInput):
    """There is no retention class of that name."""

    code = "retention-unknown"


class ValueUnserialisable(InvalidInput):
    """The result cannot be kept: values must be JSON."""

    code = "value-unserialisable"


class ConfigurationError(InvalidInput):
    """The configuration cannot work."""

    code = "configuration"


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


class LedgerClosed(OnceKeyError):
    """The ledger is closed; open a new one."""

    code = "ledger-closed"
    retryable = True


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
