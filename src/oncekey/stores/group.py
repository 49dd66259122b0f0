"""A group of claims and outcomes as four values, so that one statement can commit them all.

Numbers and texts travel as one JSON array, bytes as one blob that the rows cut their pieces from:
binding a few large values costs far less than binding many small ones, and a statement that runs
once lets go of the interpreter once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from oncekey.core.ports import Insert, Settle
from oncekey.stores.rows import encode_headers

_json = msgspec.json.Encoder().encode


def pack_inserts(inserts: Sequence[Insert]) -> tuple[str, bytes]:
    rows: list[Any] = []
    digests: list[bytes] = []
    for number, digest, operation, created_at, expires_at in inserts:
        ((namespace, endpoint), key), fingerprint, request_id, retention, _ = operation
        rows.append(
            (number, namespace, endpoint, key, request_id, retention, created_at, expires_at)
        )
        digests.append(digest)
        digests.append(fingerprint)
    return _json(rows).decode(), b"".join(digests)


def pack_settles(settles: Sequence[Settle]) -> tuple[str, bytes]:
    rows: list[Any] = []
    # SQLite cuts NULL, not an empty blob, out of an empty one: so there is a byte in front.
    pieces: list[bytes] = [b"\0"]
    at = 2
    for number, fence, (kind, status, headers, body), completed_at, expires_at in settles:
        packed = encode_headers(headers) if headers else b""
        middle = at + len(packed)
        rows.append(
            (
                number,
                fence,
                int(kind),
                status,
                at,
                len(packed),
                middle,
                len(body),
                completed_at,
                expires_at,
            )
        )
        pieces.append(packed)
        pieces.append(body)
        at = middle + len(body)
    return _json(rows).decode(), b"".join(pieces)
