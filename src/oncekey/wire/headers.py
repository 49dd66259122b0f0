"""Headers in, headers out: which carry the key, which are kept, which mark a replay."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from oncekey.core.errors import KeyInvalid
from oncekey.core.key import parse_key
from oncekey.core.model import Headers, Record, make, operation_id_of
from oncekey.wire.identity import session_in
from oncekey.wire.problem import Response, problem
from oncekey.wire.rule import Rule

KEY = b"idempotency-key"
REQUEST_ID = b"x-request-id"
REPLAYED = b"idempotent-replayed"

HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""They belong to one connection."""

# Cookies and dates belong to one answer.
_NEVER_KEPT = HOP_BY_HOP | {b"date", b"set-cookie"}
# What nearly every client sends; anything else is parsed, or refused, rule by rule.
_PLAIN_KEY = re.compile(rb"(?!t-)[A-Za-z0-9._~\-]{1,255}").fullmatch
_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")


class Lines(NamedTuple):
    """The lines of a request that matter here, from one pass over all of them."""

    keys: list[bytes]
    content_type: bytes
    request_id: bytes
    credentials: list[bytes]


_WANTED = frozenset({KEY, REQUEST_ID, b"content-type", b"authorization", b"x-api-key", b"cookie"})


def lines_of(headers: Iterable[tuple[bytes, bytes]]) -> Lines:
    """`headers` with names in lower case."""
    keys: list[bytes] = []
    credentials: list[bytes] = []
    content_type = request_id = b""
    for name, value in headers:
        if name not in _WANTED:
            continue
        if name == KEY:
            keys.append(value)
        elif name == b"content-type":
            content_type = value
        elif name == REQUEST_ID:
            request_id = value
        else:
            credentials.append(session_in(value) if name == b"cookie" else value)
    return make(Lines, (keys, content_type, request_id, credentials))


def key_in(lines: Sequence[bytes], rule: Rule) -> str | Response | None:
    """The key of a request, nothing, or the answer that refuses it."""
    if not lines:
        return problem("idempotency-key-missing") if rule.key == "required" else None
    if rule.key == "ignored":
        return None
    if rule.key == "prohibited":
        return problem("idempotency-key-prohibited")
    if len(lines) > 1:
        return problem("idempotency-key-invalid", "there are two Idempotency-Key headers; send one")
    if _PLAIN_KEY(lines[0]):
        return lines[0].decode("ascii")
    try:
        return parse_key(lines[0].decode("latin-1"))
    except KeyInvalid as error:
        return problem("idempotency-key-invalid", str(error))


def trouble_in(lines: Sequence[bytes], rule: Rule) -> tuple[str, str]:
    """Of a request without a key, or whose key `key_in` refuses: the event that observers are told,
    and the policy that misses a key, or the rule that one breaks."""
    if not lines:
        return "key-missing", "REQUIRED_A" if rule.key == "required" else "ACCEPTED"
    if rule.key == "prohibited":
        return "key-invalid", "prohibited"
    if len(lines) > 1:
        return "key-invalid", "multiple"
    try:
        parse_key(lines[0].decode("latin-1"))
    except KeyInvalid as error:
        return "key-invalid", error.reason
    # A good one, too long with the caller in front of it.
    return "key-invalid", "length"


def request_id_in(value: bytes) -> str:
    """The caller's own id of this request, when it is one that can be shown again."""
    return value.decode("ascii") if _REQUEST_ID.fullmatch(value) else ""


def kept(headers: Iterable[tuple[bytes, bytes]], rule: Rule) -> Headers:
    """What is stored of an answer's headers."""
    dropped = _NEVER_KEPT | rule.drop_headers if rule.drop_headers else _NEVER_KEPT
    return tuple([pair for pair in headers if pair[0].lower() not in dropped])


def replay_marks(record: Record) -> Headers:
    """The headers that tell a replay from a first answer."""
    return _marks(record.id, record.request_id, record.expires_at)


@lru_cache(maxsize=4096)
def _marks(number: int, request_id: str, expires_at: int) -> Headers:
    operation_id = operation_id_of(number)
    expires = datetime.fromtimestamp(expires_at / 1000, UTC).isoformat(timespec="milliseconds")
    return (
        (REPLAYED, b"true"),
        (b"original-request-id", (request_id or operation_id).encode()),
        (b"x-operation-id", operation_id.encode()),
        (b"idempotency-expires", expires.encode()),
    )
