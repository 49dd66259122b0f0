"""The hot requests of durable work as a few values, so that one statement can carry a group out.

Starts, what runs have done, and what they wait for: numbers and texts travel as JSON rows, bytes
as one blob that the rows cut their pieces from (see `stores/group.py` for why).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from oncekey.core.execution import Execution, Promise, PromiseKind, Sort, Status
from oncekey.core.ports import Insert
from oncekey.core.work import ENGINE, Advance, Await, Start

_json = msgspec.json.Encoder().encode
_RUNNING = int(Status.RUNNING)
_TASK = Sort.TASK


class Bulk(NamedTuple):
    """The values of one statement, and how many rows it writes when nothing stands in its way."""

    texts: tuple[str, ...]
    """Claims, starts, entries, keys, waits, steps and endings, each a JSON array of rows."""
    pieces: bytes
    rows: int


def is_bulk(request: Any) -> bool:
    """Whether the request can go with others into one statement."""
    kind = type(request)
    if kind is Start:
        return True
    if kind is Await:
        plain = request.start is None and request.token is None
        return plain and request.promise.kind is not PromiseKind.RETRY
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
    if kind is Await:
        return sum(len(entry.body) for entry in request.advance.entries)
    if kind is not Advance:
        return 0
    ending = len(request.ending.result) if request.ending is not None else 0
    return ending + sum(len(entry.body) for entry in request.entries)


Hot = Start | Advance | Await


def number_of(request: Hot) -> int:
    """The number of the execution a request is about."""
    if isinstance(request, Start):
        return request.execution.id
    return request.advance.id if isinstance(request, Await) else request.id


def pack(requests: Sequence[Hot], owner: int) -> Bulk:
    packing = _Packing(owner)
    for request in requests:
        if type(request) is Start:
            packing.add_start(request)
        elif type(request) is Await:
            packing.add_await(request)
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
        self._keys: list[Any] = []
        self._waits: list[Any] = []
        self._steps: list[Any] = []
        """Entries that go in with a promise, or not at all."""
        self._endings: list[Any] = []
        self._changes = 0
        """Rows that are written because of another."""
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
        number, fence, now, _, ending, _ = request
        self._add_entries(request, self._entries)
        if ending is not None:
            put = self._put
            status, result, keep, keyed, _ = ending
            kind, code = (1, 0) if status is Status.SUCCEEDED else (2, 500)
            self._changes += keyed
            self._endings.append((
                number, fence, int(status), put(result), len(result), now, now + keep, int(keyed),
                kind, code,
            ))  # fmt: skip

    def add_await(self, request: Await) -> None:
        advance, promise, insert = request.advance, request.promise, request.insert
        self._add_entries(advance, self._steps)
        digest_at = 0 if insert is None else self._add_key(insert, advance, promise)
        self._changes += advance.waits is not None
        fingerprint = promise.fingerprint
        self._waits.append((
            advance.id, advance.fence, promise.id, promise.tenant, int(promise.kind), promise.name,
            promise.created_at, promise.seq, self._put(fingerprint), len(fingerprint), digest_at,
            promise.due_at, promise.topic, promise.condition, advance.waits,
        ))  # fmt: skip

    def done(self) -> Bulk:
        lists = (
            self._claims, self._starts, self._entries, self._keys, self._waits, self._steps,
            self._endings,
        )  # fmt: skip
        rows = sum(map(len, lists)) + self._changes
        texts = tuple(_json(each).decode() for each in lists)
        return Bulk(texts, b"".join(self._pieces), rows)

    def _add_entries(self, advance: Advance, rows: list[Any]) -> None:
        number, fence, put, append = advance.id, advance.fence, self._put, rows.append
        for seq, step, name, fingerprint, failed, body, attempts, started_at, at in advance.entries:
            append((
                number, fence, seq, int(step), name, put(fingerprint), len(fingerprint),
                int(failed), put(body), len(body), attempts, started_at, at,
            ))  # fmt: skip

    def _add_claim(self, insert: Insert, execution: Execution) -> int:
        digest_at, row = self._claim_of(insert)
        public_id = execution.public_id
        links = (None, public_id) if execution.sort is _TASK else (public_id, None)
        self._claims.append((*row, *links))
        return digest_at

    def _add_key(self, insert: Insert, advance: Advance, promise: Promise) -> int:
        digest_at, row = self._claim_of(insert)
        self._keys.append((*row, promise.public_id, advance.id, advance.fence, promise.seq))
        return digest_at

    def _claim_of(self, insert: Insert) -> tuple[int, tuple[Any, ...]]:
        """Where its digest is, and the columns of a claim."""
        number, digest, operation, created_at, expires_at = insert
        ((namespace, endpoint), key), fingerprint, request_id, retention, _ = operation
        digest_at = self._put(digest)
        return digest_at, (
            number, digest_at, namespace, endpoint, key, self._put(fingerprint), ENGINE,
            request_id, retention, created_at, expires_at,
        )  # fmt: skip

    def _put(self, piece: bytes) -> int:
        at = self._at
        self._pieces.append(piece)
        self._at = at + len(piece)
        return at
