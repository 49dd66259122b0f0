"""Headers in, headers out: which carry the key, which are kept, which mark a replay."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from oncekey.core.errors import KeyInvalid
from oncekey.core.key import parse_key
from oncekey.core.model import Headers, Record
from oncekey.wire.problem import Response, problem
from oncekey.wire.rule import Rule

KEY = b"idempotency-key"
REQUEST_ID = b"x-request-id"
REPLAYED = b"idempotent-replayed"

# Hop-by-hop headers belong to one connection; cookies and dates to one answer.
_NEVER_KEPT = frozenset(
    {
        b"connection",
        b"date",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"set-cookie",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")


def key_in(lines: Sequence[bytes], rule: Rule) -> str | Response | None:
    """The key of a request, nothing, or the answer that refuses it."""
    if not lines:
        return problem("idempotency-key-missing") if rule.key == "required" else None
    if rule.key == "prohibited":
        return problem("idempotency-key-prohibited")
    if len(lines) > 1:
        return problem("idempotency-key-invalid", "there are two Idempotency-Key headers; send one")
    try:
        return parse_key(lines[0].decode("latin-1"))
    except KeyInvalid as error:
        return problem("idempotency-key-invalid", str(error))


def request_id_in(value: bytes) -> str:
    """The caller's own id of this request, when it is one that can be shown again."""
    return value.decode("ascii") if _REQUEST_ID.fullmatch(value) else ""


def kept(headers: Iterable[tuple[bytes, bytes]], rule: Rule) -> Headers:
    """What is stored of an answer's headers."""
    dropped = _NEVER_KEPT | rule.drop_headers if rule.drop_headers else _NEVER_KEPT
    return tuple([(bytes(n), bytes(v)) for n, v in headers if n.lower() not in dropped])


def replay_marks(record: Record) -> Headers:
    """The headers that tell a replay from a first answer."""
    operation_id = record.operation_id
    return (
        (REPLAYED, b"true"),
        (b"original-request-id", (record.request_id or operation_id).encode()),
        (b"x-operation-id", operation_id.encode()),
        (b"idempotency-expires", _moment(record.expires_at).encode()),
    )


def _moment(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
