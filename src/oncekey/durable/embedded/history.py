"""What a run knows of its execution: what is in the journal, and what is waited for."""

from __future__ import annotations

from oncekey.core.answers import Picked
from oncekey.core.execution import (
    BRANCH_BITS,
    Entry,
    Execution,
    Promise,
    PromiseKind,
    PromiseState,
)


class History:
    """`fence` is the right to write; `wakes` is how many wake-ups have been seen."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.id = execution.id
        self.fence = execution.fence
        self.wakes = execution.wakes
        self.journal: dict[int, Entry] = {}
        self.promises: dict[int, Promise] = {}
        """By position: what is pending, and the retries."""
        self.last: dict[int, int] = {}
        """By branch: the last position of the journal that was loaded."""

    def load(self, picked: Picked) -> None:
        """All that the store has."""
        self.fence = picked.execution.fence
        self.wakes = picked.execution.wakes
        for entry in picked.entries:
            self.journal[entry.seq] = entry
            branch = entry.seq >> BRANCH_BITS
            self.last[branch] = max(self.last.get(branch, -1), entry.seq)
        for promise in picked.promises:
            assert promise.seq is not None
            self.promises[promise.seq] = promise

    def saw(self, entry: Entry) -> None:
        """Once: what was loaded meanwhile has been counted, and who counts too much lies down over
        what it has not seen."""
        if entry.seq not in self.journal:
            self.journal[entry.seq] = entry
            self.wakes += 1

    def awaits(self, seq: int, promise: Promise) -> None:
        """It was made. This answer may be late: what was loaded meanwhile knows that it is settled,
        and who takes it for pending lies down over it."""
        known = self.promises.get(seq)
        if known is None or known.id != promise.id or known.state is PromiseState.PENDING:
            self.promises[seq] = promise

    def made(self, seq: int) -> Promise | None:
        """What was made at a position to be waited for; the wait for another attempt is not."""
        promise = self.promises.get(seq)
        return None if promise is None or promise.kind is PromiseKind.RETRY else promise

    def is_ripe(self, seq: int) -> bool:
        """Whether what is waited for at a position is there."""
        if seq in self.journal:
            return True
        promise = self.promises.get(seq)
        return promise is not None and promise.state is not PromiseState.PENDING

    def has_pending(self) -> bool:
        return any(
            promise.state is PromiseState.PENDING and seq not in self.journal
            for seq, promise in self.promises.items()
        )
