"""The nouns of the ledger, as immutable values."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from hashlib import blake2b
from typing import Literal, NamedTuple

from oncekey.core.scope import Scope

Takeover = Literal["rerun", "refuse", "recover"]
Headers = tuple[tuple[bytes, bytes], ...]

# A NamedTuple's own constructor is a Python function. On the way of every request the tuple is made
# directly: `make(Ref, (scope, key))`.
make = tuple.__new__

# Fingerprints are 16 bytes; this one is of operations that are the same whatever their input.
NO_FINGERPRINT = bytes(16)

_OPERATION_ID = re.compile(r"op_([0-9a-f]{16})")


class State(IntEnum):
    IN_PROGRESS = 0
    SUCCEEDED = 1
    FAILED = 2
    PROMISE = 3  # stands for a promise, which has a state of its own


class Kind(IntEnum):
    """What an outcome holds."""

    RESPONSE = 0  # status, headers and body of an HTTP answer
    VALUE = 1  # the JSON result of a function
    ERROR = 2  # the message of a TerminalError
    UNKEPT = 3  # it ran, but the answer was streamed or too large to keep


class Ref(NamedTuple):
    """What a key means: the key within its scope."""

    scope: Scope
    key: str

    @property
    def digest(self) -> bytes:
        """16 bytes that stand for (namespace, endpoint, key)."""
        scope, key = self
        joined = _head(*scope) + key.encode("utf-8", "surrogatepass")
        return blake2b(joined, digest_size=16).digest()


@lru_cache(maxsize=256)
def _head(namespace: str, endpoint: str) -> bytes:
    """The scope of a key, its lengths keeping the parts apart."""
    head = f"{len(namespace)}:{namespace}{len(endpoint)}:{endpoint}"
    return head.encode("utf-8", "surrogatepass")


class Operation(NamedTuple):
    """One thing a caller wants done once."""

    ref: Ref
    fingerprint: bytes = NO_FINGERPRINT
    request_id: str = ""
    retention: str = "interactive"
    takeover: Takeover = "rerun"


class Outcome(NamedTuple):
    """How an operation ended."""

    kind: Kind
    status: int = 0
    headers: Headers = ()
    body: bytes = b""

    @property
    def state(self) -> State:
        failed = self.kind is Kind.ERROR or self.status >= 400
        return State.FAILED if failed else State.SUCCEEDED


LinkKind = Literal["workflow", "task", "promise"]


class Link(NamedTuple):
    """What a key stands for, when it is more than a plain request."""

    kind: LinkKind
    id: str


class Record(NamedTuple):
    """One row of the ledger, as read."""

    id: int
    ref: Ref
    fingerprint: bytes
    owner: int
    fence: int
    request_id: str
    retention: str
    created_at: int
    expires_at: int
    completed_at: int | None = None
    outcome: Outcome | None = None
    link: Link | None = None

    @property
    def operation_id(self) -> str:
        return operation_id_of(self.id)

    @property
    def state(self) -> State:
        if self.outcome is not None:
            return self.outcome.state
        # A workflow settles its key when it ends; a promise leaves its own as it is.
        is_promise = self.link is not None and self.link.kind == "promise"
        return State.PROMISE if is_promise else State.IN_PROGRESS

    @property
    def attempts(self) -> int:
        """Each takeover is one more attempt and one higher fence."""
        return self.fence


def without_answer(record: Record) -> Record:
    """As lists tell of it."""
    if record.outcome is None:
        return record
    return record._replace(outcome=record.outcome._replace(headers=(), body=b""))


def operation_id_of(number: int) -> str:
    """`op_` and 16 hexadecimal digits, which sort as the number does."""
    return "op_" + number.to_bytes(8, "big").hex()


def number_of(operation_id: str) -> int | None:
    """The inverse of `operation_id_of`; None for anything that is not an operation id."""
    found = _OPERATION_ID.fullmatch(operation_id)
    number = int(found[1], 16) if found else 1 << 63
    return number if number < 1 << 63 else None
