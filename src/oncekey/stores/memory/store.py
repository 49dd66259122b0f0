"""The oracle: the contract of a store in plain dictionaries. Not durable, one process only."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from oncekey.core.errors import ConfigurationError, LedgerClosed
from oncekey.core.looking import Looked
from oncekey.core.model import Record, without_answer
from oncekey.core.ports import (
    Abandon,
    Answer,
    Beat,
    Committed,
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
from oncekey.core.scope import Scope
from oncekey.stores.bell import Listeners
from oncekey.stores.memory.api_keys import MemoryApiKeys
from oncekey.stores.memory.audit import MemoryAudit
from oncekey.stores.memory.claims import Claims
from oncekey.stores.memory.deliveries import MemoryDeliveries
from oncekey.stores.memory.looking import looked
from oncekey.stores.memory.schedules import MemorySchedules
from oncekey.stores.memory.webhooks import MemoryWebhooks
from oncekey.stores.memory.work import MemoryWork

_OWNER, _NOBODY = 1, 0


class MemoryStore:
    committed: Committed | None = None

    def __init__(self) -> None:
        self._claims = Claims()
        self._retention: dict[str, float] = {}
        self._swept_at = 0
        self._purges = 0
        self._closed = False
        self._listeners = Listeners()
        self._lock = threading.RLock()
        self._deliveries = MemoryDeliveries()
        rooms = (
            MemoryWork(self._claims, _OWNER),
            MemoryApiKeys(),
            MemorySchedules(),
            MemoryWebhooks(),
            self._deliveries,
            MemoryAudit(),
        )
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
                old = self._claims.of(old_id)
                if old and old.fence == old_fence and self._is_expired(old, insert.created_at):
                    self._claims.forget(old_id)
                return self._insert(insert)
            case Take(number, digest, fence):
                return self._take(number, digest, fence)
            case Settle(number, fence):
                return self._settle(request)
            case Release(number, fence):
                record = self._unsettled(number, fence)
                return record is not None and self._claims.forget(number)
            case Abandon(number, fence):
                return self._abandon(number, fence)
            case Peek(digest, number):
                record = self._claims.at(digest) if digest else self._claims.of(number)
                return self._found(record) if record else None
            case Purge(digest):
                self._purges += 1
                record = self._claims.at(digest)
                return record is not None and self._claims.forget(record.id)
            case _:
                return self._others[type(request)](request)

    def _insert(self, insert: Insert) -> Held | Found | Gone:
        record = self._claims.at(insert.digest)
        if record is None:
            return Held(1) if self._claims.add(insert, _OWNER) else Gone()
        ours = record.id == insert.id and record.owner == _OWNER and record.outcome is None
        return Held(record.fence) if ours else self._found(record)

    def _take(self, number: int, digest: bytes, fence: int) -> Held | Found | Gone:
        record = self._unsettled(number, fence)
        if record is None or record.owner != _NOBODY:
            seen = self._claims.at(digest)
            return self._found(seen) if seen else Gone()
        self._claims.put(record._replace(owner=_OWNER, fence=fence + 1))
        return Held(fence + 1)

    def _abandon(self, number: int, fence: int) -> bool:
        record = self._unsettled(number, fence)
        if record is None or record.owner not in {_OWNER, _NOBODY}:
            return False
        return self._claims.put(record._replace(owner=_NOBODY))

    def _settle(self, settle: Settle) -> bool:
        record = self._claims.of(settle.id)
        if record is None or record.fence != settle.fence:
            return False
        return record.outcome is not None or self._claims.put(
            record._replace(
                completed_at=settle.completed_at,
                expires_at=settle.expires_at,
                outcome=settle.outcome,
            )
        )

    def _unsettled(self, number: int, fence: int) -> Record | None:
        record = self._claims.of(number)
        if record is None or record.fence != fence or record.outcome is not None:
            return None
        return record

    def _found(self, record: Record) -> Found:
        return Found(record, record.outcome is None and record.owner == _NOBODY)

    def list(self, query: Query, now: int) -> Looked[Found]:
        with self._lock:
            records = self._claims.all()
        page = looked(records[::-1], query, lambda record: _matches(record, query, now))
        return Looked((self._found(without_answer(record)) for record in page), page.to)

    def read(self, request: Any) -> Any:
        if self._closed:
            raise LedgerClosed
        with self._lock:
            return self._answer(request)

    def sweep(self, now: int, batch: int) -> int:
        with self._lock:
            expired = [each for each in self._claims.all() if self._is_expired(each, now)][:batch]
            for record in expired:
                self._claims.forget(record.id)
            return len(expired) or self._deliveries.sweep(now, batch)

    def count_expired(self, now: int) -> int:
        with self._lock:
            expired = sum(self._is_expired(record, now) for record in self._claims.all())
            return expired + self._deliveries.count_expired(now)

    def sweep_due(self, now: int, interval: int) -> bool:
        if now - self._swept_at < interval:
            return False
        self._swept_at = now
        return True

    def _is_expired(self, record: Record, now: int) -> bool:
        """What an execution or a promise holds is nobody's to sweep before it is settled."""
        over = record.outcome is not None or record.owner == _NOBODY
        return over and record.expires_at <= now

    def retention(self) -> dict[str, float]:
        return dict(self._retention)

    def set_retention(self, name: str, seconds: float) -> None:
        self._retention[name] = seconds

    def ring(self) -> None:
        """There are no other processes: whoever listens here is told."""
        self._listeners.tell()

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        stop = self._listeners.add(heard)
        heard()
        return stop

    def close(self) -> None:
        self._closed = True


def _matches(record: Record, query: Query, now: int) -> bool:
    return (
        (query.state is None or record.state is query.state)
        and (query.prefix is None or record.ref.key.startswith(query.prefix))
        and query.key in {None, record.ref.key}
        and _is_inside(record.ref.scope, query)
        and record.id > query.after
        and not (record.outcome is not None and record.expires_at <= now)
    )


def _is_inside(scope: Scope, query: Query) -> bool:
    return (
        (query.namespace is None or scope.namespace == query.namespace)
        and (query.within is None or scope.namespace.startswith(query.within))
        and (query.endpoint is None or scope.endpoint == query.endpoint)
    )
