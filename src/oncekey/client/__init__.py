"""Callers of an idempotent API: intents with keys that outlive the caller, retried until answered.

`outbound` names the calls that are made inside of an operation.
"""

try:
    import httpx as _httpx  # noqa: F401
except ImportError as _missing:
    raise ImportError("oncekey.client needs httpx: pip install 'oncekey[client]'") from _missing

from oncekey.client.answer import Answer
from oncekey.client.backoff import Backoff
from oncekey.client.client import AsyncClient, Client
from oncekey.client.dialect import ONCEKEY, STRIPE, Dialect
from oncekey.client.errors import (
    ClientError,
    CredentialsRefused,
    GaveUp,
    InFlight,
    IntentChanged,
    IntentTooOld,
    KeyRefused,
    KeyReused,
    NotRecovered,
    OutcomeNotKept,
    OutcomeUnknown,
    Redirected,
)
from oncekey.client.happenings import (
    Answered,
    Attempted,
    Captured,
    Failed,
    Happening,
    Retrying,
)
from oncekey.client.intent import AsyncIntent, Intent
from oncekey.client.intents import Intents, MemoryIntents
from oncekey.client.sqlite.intents import SqliteIntents

__all__ = [
    "ONCEKEY",
    "STRIPE",
    "Answer",
    "Answered",
    "AsyncClient",
    "AsyncIntent",
    "Attempted",
    "Backoff",
    "Captured",
    "Client",
    "ClientError",
    "CredentialsRefused",
    "Dialect",
    "Failed",
    "GaveUp",
    "Happening",
    "InFlight",
    "Intent",
    "IntentChanged",
    "IntentTooOld",
    "Intents",
    "KeyRefused",
    "KeyReused",
    "MemoryIntents",
    "NotRecovered",
    "OutcomeNotKept",
    "OutcomeUnknown",
    "Redirected",
    "Retrying",
    "SqliteIntents",
]
