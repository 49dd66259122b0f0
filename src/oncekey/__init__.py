"""OnceKey: one key, one effect, and the same answer for everyone."""

from __future__ import annotations

from oncekey.compose import open_ledger as open  # noqa: A004 - `oncekey.open` reads as it should
from oncekey.core.claim import Claim
from oncekey.core.decision import Busy, Decision, Mismatch, Proceed, Replay, Unknown
from oncekey.core.errors import (
    ClaimLost,
    ConfigurationError,
    InProgress,
    InvalidInput,
    KeyInvalid,
    KeyReused,
    LedgerClosed,
    OnceKeyError,
    OutcomeNotKept,
    OutcomeUnknown,
    SchemaOutdated,
    SchemaTooNew,
    StoreUnavailable,
    TerminalError,
    ValueUnserialisable,
)
from oncekey.core.ledger import Ledger
from oncekey.core.model import Kind, Operation, Outcome, Record, Ref, State
from oncekey.core.once import once
from oncekey.core.ports import Query
from oncekey.core.recovery import CannotTell, DidNotHappen
from oncekey.core.scope import Scope, namespace_of
from oncekey.wire.fingerprint import Fingerprint
from oncekey.wire.identity import Identity
from oncekey.wire.route import Route, route
from oncekey.wire.rule import Rule

__all__ = [
    "Busy",
    "CannotTell",
    "Claim",
    "ClaimLost",
    "ConfigurationError",
    "Decision",
    "DidNotHappen",
    "Fingerprint",
    "Identity",
    "InProgress",
    "InvalidInput",
    "KeyInvalid",
    "KeyReused",
    "Kind",
    "Ledger",
    "LedgerClosed",
    "Mismatch",
    "OnceKeyError",
    "Operation",
    "Outcome",
    "OutcomeNotKept",
    "OutcomeUnknown",
    "Proceed",
    "Query",
    "Record",
    "Ref",
    "Replay",
    "Route",
    "Rule",
    "SchemaOutdated",
    "SchemaTooNew",
    "Scope",
    "State",
    "StoreUnavailable",
    "TerminalError",
    "Unknown",
    "ValueUnserialisable",
    "namespace_of",
    "once",
    "open",
    "route",
]
