"""How the record of a key is written: what lists and sweeps look at stands in front of it.

As text, records sort by their numbers. One with a large body is kept a second time, apart and as a
whole, so that a list does not read it.
"""

from __future__ import annotations

from oncekey.core.model import Record
from oncekey.stores.restate.columns import joined, last, piece
from oncekey.stores.restate.values import pack, unpack

RECORD, WHOLE = "record", "whole"
SETTLED = "-" * 16
_LARGE = 4096
_APART = ord("+")
# Behind the number, which takes 16 characters too.
EXPIRY, HOLDER, STATE = piece(17, 16), piece(33, 16), piece(49, 1)
NAMESPACE, ENDPOINT, KEY = 2, 3, 4


def written(record: Record) -> bytes:
    apart = is_large(record)
    head = (
        f"{record.id:016x}{record.expires_at:016x}{holder_of(record)}{record.state:d}"
        f"{'+' if apart else '-'}"
    )
    scope, key = record.ref
    lean = without_body(record) if apart else record
    return joined(head, scope.namespace, scope.endpoint, key) + pack(lean)


def unwritten(data: bytes) -> Record:
    """Without its body, if it is kept apart."""
    record: Record = unpack(last(data))
    return record


def is_apart(data: bytes) -> bool:
    """Whether the whole of it is kept apart."""
    return data[49] == _APART


def is_large(record: Record | None) -> bool:
    """Whether the whole of it is to be kept apart."""
    outcome = None if record is None else record.outcome
    return outcome is not None and len(outcome.body) > _LARGE


def without_body(record: Record) -> Record:
    assert record.outcome is not None
    return record._replace(outcome=record.outcome._replace(body=b""))


def holder_of(record: Record) -> str:
    return SETTLED if record.outcome is not None else owner_text(record.owner)


def owner_text(owner: int) -> str:
    return f"{owner:016x}"
