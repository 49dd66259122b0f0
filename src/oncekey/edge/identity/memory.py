"""Credentials that were verified, by a digest of the lines that carried them. Bounded; exact about
expiry; what is forgotten does not come back."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from oncekey.core.clock import Clock
from oncekey.edge.identity.known import Known, Verified, Verifier


class _Entry(NamedTuple):
    known: Known
    until: int
    expires_at: float | None
    generation: int
    verifier: Verifier


class Memory:
    def __init__(self, clock: Clock, size: int) -> None:
        self._now, self._steady = clock.now, clock.steady
        self._size = size
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self.epoch = 0
        """Read before a credential is verified, and given to `put`."""

    def recall(self, digest: bytes) -> Known | None:
        entry = self._entries.get(digest)
        if entry is None:
            return None
        known, until, expires_at, generation, verifier = entry
        if (
            self._steady() >= until
            or generation != verifier.generation
            or (expires_at is not None and self._now() >= expires_at)
        ):
            # Dropped, not skipped: it must not come back when the clock steps back.
            del self._entries[digest]
            return None
        self._entries.move_to_end(digest)
        return known

    def put(self, digest: bytes, verified: Verified, verifier: Verifier, epoch: int) -> None:
        if epoch != self.epoch or not self._size:
            return
        self._entries[digest] = _Entry(*verified, verifier)
        self._entries.move_to_end(digest)
        while len(self._entries) > self._size:
            self._entries.popitem(last=False)

    def forget(self) -> None:
        self.epoch += 1
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)
