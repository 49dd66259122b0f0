"""OnceKey: one key, one effect, and the same answer for everyone."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from oncekey.compose import open_ledger as open  # noqa: A004 - `oncekey.open` reads as it should
from oncekey.core.claim import Claim
from oncekey.core.decision import Busy, Decision, Mismatch, Proceed, Replay, Unknown
from oncekey.core.errors import (
    CallFailed,
    ClaimLost,
    ConditionInvalid,
    ConfigurationError,
    ControlRefused,
    InProgress,
    InvalidInput,
    KeyConflict,
    KeyInvalid,
    KeyReused,
    LedgerClosed,
    NameUnknown,
    NonDeterministic,
    NotFound,
    OnceKeyError,
    OutcomeNotKept,
    OutcomeUnknown,
    PayloadTooLarge,
    PromiseCancelled,
    PromiseOver,
    PromiseRejected,
    PromiseTimedOut,
    RequestKeyInvalid,
    ScheduleInvalid,
    SchemaOutdated,
    SchemaTooNew,
    StepFailed,
    StoreUnavailable,
    TerminalError,
    ValueUnserialisable,
)
from oncekey.core.internal import Internal
from oncekey.core.ledger import Ledger
from oncekey.core.model import Kind, Link, Operation, Outcome, Record, Ref, State
from oncekey.core.once import once
from oncekey.core.ports import Query
from oncekey.core.recovery import CannotTell, DidNotHappen
from oncekey.core.scope import Scope, namespace_of
from oncekey.wire.fingerprint import Fingerprint
from oncekey.wire.identity import Identity
from oncekey.wire.route import Route, route
from oncekey.wire.rule import Rule

if TYPE_CHECKING:
    from oncekey.compose.app import App
    from oncekey.durable.app import Handle
    from oncekey.durable.context import Context
    from oncekey.durable.retry import Retry

__all__ = [
    "App",
    "Busy",
    "CallFailed",
    "CannotTell",
    "Claim",
    "ClaimLost",
    "ConditionInvalid",
    "ConfigurationError",
    "Context",
    "ControlRefused",
    "Decision",
    "DidNotHappen",
    "Fingerprint",
    "Handle",
    "Identity",
    "InProgress",
    "Internal",
    "InvalidInput",
    "KeyConflict",
    "KeyInvalid",
    "KeyReused",
    "Kind",
    "Ledger",
    "LedgerClosed",
    "Link",
    "Mismatch",
    "NameUnknown",
    "NonDeterministic",
    "NotFound",
    "OnceKeyError",
    "Operation",
    "Outcome",
    "OutcomeNotKept",
    "OutcomeUnknown",
    "PayloadTooLarge",
    "Proceed",
    "PromiseCancelled",
    "PromiseOver",
    "PromiseRejected",
    "PromiseTimedOut",
    "Query",
    "Record",
    "Ref",
    "Replay",
    "RequestKeyInvalid",
    "Retry",
    "Route",
    "Rule",
    "ScheduleInvalid",
    "SchemaOutdated",
    "SchemaTooNew",
    "Scope",
    "State",
    "StepFailed",
    "StoreUnavailable",
    "TerminalError",
    "Unknown",
    "ValueUnserialisable",
    "namespace_of",
    "once",
    "open",
    "route",
]

# A third of all that is imported here, for those who have workflows: not before it is asked for.
_OF_WORKFLOWS = {
    "App": "oncekey.compose.app",
    "Context": "oncekey.durable.context",
    "Handle": "oncekey.durable.app",
    "Retry": "oncekey.durable.retry",
}


def __getattr__(name: str) -> Any:
    if name not in _OF_WORKFLOWS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_OF_WORKFLOWS[name]), name)
    return found
