"""The oracle: the contract of a store in plain dictionaries. Not durable, one process only."""

from __future__ import annotations

import threading
from typing import Any

from oncekey.core.errors import ConfigurationError, LedgerClosed
from oncekey.core.model import Record
from oncekey.core.ports import (
    Abandon,
    Answer,
    Beat,
    Faults,
    Found,
    Gone,
    Held,
    Insert,
    Peek,
    Purge,
    Query,
    Release,
    Replace,
    Request,
    Settle,
    Take,
    Waiter,
)
from oncekey.stores.memory.api_keys import MemoryApiKeys
from oncekey.stores.memory.schedules import MemorySchedules
from oncekey.stores.memory.work import MemoryWork

_OWNER, _NOBODY = 1, 0


class MemoryStore:
    def __init__(self) -> None:
        self._by_digest: dict[bytes, Record] = {}
        self._digests: dict[int, bytes] = {}
        self._retention: dict[str, float] = {}
        self._swept_at = 0
        self._purges = 0
        self._closed = False
        self._lock = threading.RLock()
        rooms = (MemoryWork(self), MemoryApiKeys(), MemorySchedules())
        self._others = {kind: answer for room in rooms for kind, answer in room.answers().items()}

    def open(self, beat: Beat, fault: Faults | None = None) -> None:
        beat(self._retention)

    def submit(self, request: Any, waiter: Waiter) -> None:
        if self._closed:
            answer: Any = LedgerClosed()
        else:
            with self._lock:
                answer = self._answer(request)
        # Whoever submits is in the waiter's own thread, or on its own loop.
        waiter.resolve(answer)

    def ask_within(self, transaction: Any, request: Request) -> Answer:
        raise ConfigurationError("memory:// has no transactions; use sqlite:/// or postgresql://")

    async def aask_within(self, transaction: Any, request: Request) -> Answer:
        return self.ask_within(transaction, request)

    def purge_epoch(self) -> int | None:
        return self._purges

    def _answer(self, request: Any) -> Any:
        match request:
            case Insert():
                return self._insert(request)
            case Replace(old_id, old_fence, insert):
                digest = self._digests.get(old_id)
                if digest and self._by_digest[digest].fence == old_fence:
                    self._forget_if_expired(digest, insert.created_at)
                return self._insert(insert)
            case Take(number, digest, fence):
                return self._take(number, digest, fence)
            case Settle(number, fence):
                return self._settle(request)
            case Release(number, fence):
                record = self._unsettled(number, fence)
                return record is not None and self._forget(self._digests[number])
            case Abandon(number, fence):
                record = self._unsettled(number, fence)
                return record is not None and self._put(record._replace(owner=_NOBODY))
            case Peek(digest, number):
                at = digest or self._digests.get(number)
                record = self._by_digest.get(at) if at else None
                return self._found(record) if record else None
            case Purge(digest):
                self._purges += 1
                return digest in self._by_digest and self._forget(digest)
            case _:
                return self._others[type(request)](request)

    def _insert(self, insert: Insert) -> Held | Found | Gone:
        record = self._by_digest.get(insert.digest)
        if record is not None:
            ours = record.id == insert.id and record.owner == _OWNER and record.outcome is None
            return Held(record.fence) if ours else self._found(record)
        if insert.id in self._digests:
            return Gone()
        operation = insert.operation
        self._digests[insert.id] = insert.digest
        self._put(
            Record(
                insert.id,
                operation.ref,
                operation.fingerprint,
                _OWNER,
                1,
                operation.request_id,
                operation.retention,
                insert.created_at,
                insert.expires_at,
            )
        )
        return Held(1)

    def _take(self, number: int, digest: bytes, fence: int) -> Held | Found | Gone:
        record = self._unsettled(number, fence)
        if record is None or record.owner != _NOBODY:
            seen = self._by_digest.get(digest)
            return self._found(seen) if seen else Gone()
        self._put(record._replace(owner=_OWNER, fence=fence + 1))
        return Held(fence + 1)

    def _settle(self, settle: Settle) -> bool:
        digest = self._digests.get(settle.id)
        if digest is None or self._by_digest[digest].fence != settle.fence:
            return False
        record = self._by_digest[digest]
        return record.outcome is not None or self._put(
            record._replace(
                completed_at=settle.completed_at,
                expires_at=settle.expires_at,
                outcome=settle.outcome,
            )
        )

    def _unsettled(self, number: int, fence: int) -> Record | None:
        digest = self._digests.get(number)
        record = self._by_digest[digest] if digest else None
        if record is None or record.fence != fence or record.outcome is not None:
            return None
        return record

    def _put(self, record: Record) -> bool:
        self._by_digest[self._digests[record.id]] = record
        return True

    def _forget(self, digest: bytes) -> bool:
        del self._digests[self._by_digest.pop(digest).id]
        return True

    def _forget_if_expired(self, digest: bytes, now: int) -> bool:
        return self._is_expired(self._by_digest[digest], now) and self._forget(digest)

    def _found(self, record: Record) -> Found:
        return Found(record, record.outcome is None and record.owner == _NOBODY)

    def list(self, query: Query, now: int) -> list[Found]:
        with self._lock:
            records = sorted(self._by_digest.values(), key=lambda record: -record.id)
        found = [self._found(record) for record in records if _matches(record, query, now)]
        return found[: query.limit]

    def sweep(self, now: int, batch: int) -> int:
        with self._lock:
            expired = [d for d, r in self._by_digest.items() if self._is_expired(r, now)][:batch]
            for digest in expired:
                self._forget(digest)
        return len(expired)

    def count_expired(self, now: int) -> int:
        with self._lock:
            return sum(self._is_expired(record, now) for record in self._by_digest.values())

    def sweep_due(self, now: int, interval: int) -> bool:
        if now - self._swept_at < interval:
            return False
        self._swept_at = now
        return True

    def _is_expired(self, record: Record, now: int) -> bool:
        over = record.outcome is not None or record.owner == _NOBODY
        return over and record.expires_at <= now

    def retention(self) -> dict[str, float]:
        return dict(self._retention)

    def set_retention(self, name: str, seconds: float) -> None:
        self._retention[name] = seconds

    def close(self) -> None:
        self._closed = True


def _matches(record: Record, query: Query, now: int) -> bool:
    return (
        (query.state is None or record.state is query.state)
        and (query.prefix is None or record.ref.key.startswith(query.prefix))
        and (query.namespace is None or record.ref.scope.namespace == query.namespace)
        and (query.before is None or record.id < query.before)
        and not (record.outcome is not None and record.expires_at <= now)
    )
