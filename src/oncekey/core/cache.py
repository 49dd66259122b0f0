"""Settled records kept at hand, bounded by bytes. Never answers after an expiry or a purge."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from oncekey.core.clock import Clock
from oncekey.core.model import Record

# What a record costs beside its outcome: tuple, texts, digest and table entry, roughly.
_OVERHEAD, _HEADER = 1024, 200


class ReplayCache:
    def __init__(self, limit: int, epoch: Callable[[], int | None]) -> None:
        self._limit = limit
        # Read before the store is, and given to `put`: a purge between makes a record stale.
        self.epoch = epoch
        self._seen_epoch: int | None = None
        self._records: OrderedDict[bytes, Record] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, digest: bytes, clock: Clock) -> Record | None:
        record = self._records.get(digest)
        if record is None:
            return None
        epoch = self.epoch()
        if epoch is None or epoch != self._seen_epoch:
            self.clear()
            return None
        if record.expires_at <= clock.now():
            # Dropped, not skipped: it must not come back when the clock steps back.
            self._drop(digest)
            return None
        try:  # noqa: SIM105 - a context manager costs more than all the rest of a hit
            self._records.move_to_end(digest)
        except KeyError:
            # Dropped by another thread meanwhile; it still is the answer.
            pass
        return record

    def put(self, digest: bytes, record: Record, epoch: int | None) -> None:
        if epoch is None or not self._limit or record.outcome is None:
            return
        with self._lock:
            if epoch != self._seen_epoch:
                self._drop_all()
                self._seen_epoch = epoch
            self._size -= _cost_of(self._records.pop(digest, None))
            self._records[digest] = record
            self._size += _cost_of(record)
            while self._size > self._limit:
                _, dropped = self._records.popitem(last=False)
                self._size -= _cost_of(dropped)

    def _drop(self, digest: bytes) -> None:
        with self._lock:
            self._size -= _cost_of(self._records.pop(digest, None))

    def clear(self) -> None:
        with self._lock:
            self._drop_all()

    def forget(self) -> None:
        """In a forked child, where the lock may be held by a thread that is not here."""
        self._lock = threading.Lock()
        self.clear()

    def _drop_all(self) -> None:
        self._records.clear()
        self._size = 0
        self._seen_epoch = None


def _cost_of(record: Record | None) -> int:
    if record is None or record.outcome is None:
        return 0
    return len(record.outcome.body) + _HEADER * len(record.outcome.headers) + _OVERHEAD
