"""The hot requests of durable work as a few values, so that one statement can carry a group out.

Starts, and what runs have done: numbers and texts travel as JSON rows, bytes as one blob that the
rows cut their pieces from (see `stores/group.py` for why).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from oncekey.core.execution import Sort, Status
from oncekey.core.work import ENGINE, Advance, Start

_json = msgspec.json.Encoder().encode
_RUNNING = int(Status.RUNNING)
_TASK = Sort.TASK


class Bulk(NamedTuple):
    """The values of one statement, and how many rows it writes when nothing stands in its way."""

    claims: str
    starts: str
    entries: str
    endings: str
    pieces: bytes
    rows: int


def is_bulk(request: Any) -> bool:
    """Whether the request can go with others into one statement."""
    kind = type(request)
    if kind is Start:
        return True
    if kind is not Advance or request.waits is not None:
        return False
    if request.ending is None:
        # One that writes nothing asks whether the run still has its execution: no row would tell.
        return bool(request.entries)
    return bool(request.ending.plain and request.ending.status.is_over)


def size_of(request: Any) -> int:
    """How many bytes of values go into the statement with a request."""
    kind = type(request)
    if kind is Start:
        return len(request.execution.input)
    if kind is not Advance:
        return 0
    ending = len(request.ending.result) if request.ending is not None else 0
    return ending + sum(len(entry.body) for entry in request.entries)


class _Pieces:
    """Bytes put one behind the other; a row names a piece by where it starts and its length."""

    def __init__(self) -> None:
        # SQLite cuts NULL, not an empty blob, out of an empty one: so there is a byte in front.
        self.parts: list[bytes] = [b"\0"]
        self._at = 2

    def add(self, piece: bytes) -> int:
        at = self._at
        self.parts.append(piece)
        self._at = at + len(piece)
        return at


def pack(requests: Sequence[Start | Advance], owner: int) -> Bulk:
    pieces = _Pieces()
    claims: list[Any] = []
    starts: list[Any] = []
    entries: list[Any] = []
    endings: list[Any] = []
    keyed_endings = 0
    for request in requests:
        if type(request) is Start:
            _pack_start(request, owner, claims, starts, pieces)
            continue
        assert isinstance(request, Advance)
        number, fence, now, steps, ending, _ = request
        for seq, step, name, fingerprint, failed, body, attempts, started_at, at in steps:
            entries.append(
                (
                    number,
                    fence,
                    seq,
                    int(step),
                    name,
                    pieces.add(fingerprint),
                    len(fingerprint),
                    int(failed),
                    pieces.add(body),
                    len(body),
                    attempts,
                    started_at,
                    at,
                )
            )
        if ending is not None:
            status, result, keep, keyed, _ = ending
            keyed_endings += keyed
            failed = status is not Status.SUCCEEDED
            endings.append(
                (
                    number,
                    fence,
                    int(status),
                    pieces.add(result),
                    len(result),
                    now,
                    now + keep,
                    int(keyed),
                    2 if failed else 1,
                    500 if failed else 0,
                )
            )
    rows = len(claims) + len(starts) + len(entries) + len(endings) + keyed_endings
    return Bulk(
        _json(claims).decode(),
        _json(starts).decode(),
        _json(entries).decode(),
        _json(endings).decode(),
        b"".join(pieces.parts),
        rows,
    )


def _pack_start(
    request: Start, owner: int, claims: list[Any], starts: list[Any], pieces: _Pieces
) -> None:
    execution, insert = request
    digest_at = 0
    if insert is not None:
        number, digest, operation, created_at, expires_at = insert
        ((namespace, endpoint), key), fingerprint, request_id, retention, _ = operation
        digest_at = pieces.add(digest)
        is_task = execution.sort is _TASK
        claims.append(
            (
                number,
                digest_at,
                namespace,
                endpoint,
                key,
                pieces.add(fingerprint),
                ENGINE,
                request_id,
                retention,
                created_at,
                expires_at,
                None if is_task else execution.public_id,
                execution.public_id if is_task else None,
            )
        )
    (
        number, tenant, sort, name, given, status, _, fence, created_at, _, keep, _, frees_key,
        due_at, _, _, _, _, _, _,
    ) = execution  # fmt: skip
    starts.append(
        (
            number,
            tenant,
            int(sort),
            name,
            pieces.add(given),
            len(given),
            int(status),
            owner if status == _RUNNING else 0,
            fence,
            created_at,
            keep,
            digest_at,
            int(frees_key),
            due_at,
        )
    )
