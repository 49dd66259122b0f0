"""The hot requests of durable work as a few values, so that one statement can carry a group out.

Starts, and what runs have done: numbers and texts travel as JSON rows, bytes as one blob that the
rows cut their pieces from (see `stores/group.py` for why).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from oncekey.core.execution import Execution, Sort, Status
from oncekey.core.ports import Insert
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


def pack(requests: Sequence[Start | Advance], owner: int) -> Bulk:
    packing = _Packing(owner)
    for request in requests:
        if type(request) is Start:
            packing.add_start(request)
        else:
            assert isinstance(request, Advance)
            packing.add_advance(request)
    return packing.done()


class _Packing:
    """Rows of each kind, and bytes put one behind the other: a row names a piece of them by where
    it starts and its length."""

    def __init__(self, owner: int) -> None:
        self._owner = owner
        self._claims: list[Any] = []
        self._starts: list[Any] = []
        self._entries: list[Any] = []
        self._endings: list[Any] = []
        self._outcomes = 0
        # SQLite cuts NULL, not an empty blob, out of an empty one: so there is a byte in front.
        self._pieces: list[bytes] = [b"\0"]
        self._at = 2

    def add_start(self, request: Start) -> None:
        execution, insert = request
        (
            number, tenant, sort, name, given, status, _, fence, created_at, _, keep, _, frees_key,
            due_at, _, _, _, _, _, _,
        ) = execution  # fmt: skip
        digest_at = 0 if insert is None else self._add_claim(insert, execution)
        owner = self._owner if status == _RUNNING else 0
        self._starts.append((
            number, tenant, int(sort), name, self._put(given), len(given), int(status), owner,
            fence, created_at, keep, digest_at, int(frees_key), due_at,
        ))  # fmt: skip

    def add_advance(self, request: Advance) -> None:
        number, fence, now, steps, ending, _ = request
        put, append = self._put, self._entries.append
        for seq, step, name, fingerprint, failed, body, attempts, started_at, at in steps:
            append((
                number, fence, seq, int(step), name, put(fingerprint), len(fingerprint),
                int(failed), put(body), len(body), attempts, started_at, at,
            ))  # fmt: skip
        if ending is not None:
            status, result, keep, keyed, _ = ending
            kind, code = (1, 0) if status is Status.SUCCEEDED else (2, 500)
            self._outcomes += keyed
            self._endings.append((
                number, fence, int(status), put(result), len(result), now, now + keep, int(keyed),
                kind, code,
            ))  # fmt: skip

    def done(self) -> Bulk:
        lists = (self._claims, self._starts, self._entries, self._endings)
        rows = sum(map(len, lists)) + self._outcomes
        claims, starts, entries, endings = (_json(each).decode() for each in lists)
        return Bulk(claims, starts, entries, endings, b"".join(self._pieces), rows)

    def _add_claim(self, insert: Insert, execution: Execution) -> int:
        number, digest, operation, created_at, expires_at = insert
        ((namespace, endpoint), key), fingerprint, request_id, retention, _ = operation
        digest_at, public_id = self._put(digest), execution.public_id
        links = (None, public_id) if execution.sort is _TASK else (public_id, None)
        self._claims.append((
            number, digest_at, namespace, endpoint, key, self._put(fingerprint), ENGINE,
            request_id, retention, created_at, expires_at, *links,
        ))  # fmt: skip
        return digest_at

    def _put(self, piece: bytes) -> int:
        at = self._at
        self._pieces.append(piece)
        self._at = at + len(piece)
        return at
