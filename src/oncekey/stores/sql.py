"""What the SQL stores share: a writer, a desk for administration, a life that others can see."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar

from oncekey.core.clock import Clock
from oncekey.core.errors import LedgerClosed
from oncekey.core.fork import around_forks
from oncekey.core.looking import Looked
from oncekey.core.ports import Answer, Beat, Committed, Faults, Found, Query, Request, Waiter
from oncekey.stores import within
from oncekey.stores.administration import Administration, Run
from oncekey.stores.bell import Bell, Heard
from oncekey.stores.points import WatchedSession
from oncekey.stores.requests import Setting
from oncekey.stores.writer import Session, Writer

# The ledger's floor knows nothing of claims still on their way; this is how old they may be.
_FLOOR_MARGIN = 15_000 << 21
_NEVER = -(1 << 62)


class SqlStore(ABC):
    """`lease` is how many seconds a silent process keeps its claims."""

    dialect: ClassVar[str]
    writers: ClassVar[int] = 1
    alone: ClassVar[bool] = False
    """Whether there is one transaction that writes at a time."""

    def __init__(
        self, clock: Clock, *, lease: float = 15.0, heartbeat: float = 5.0, migrate: bool = True
    ) -> None:
        self.owner = 0
        self.lease = int(lease * 1000)
        self._clock = clock
        self._heartbeat = heartbeat
        self._migrate = migrate
        self._starting = threading.Lock()
        self._writer: Writer | None = None
        self._closed = False
        self._beaten_at = self._woke_at = _NEVER
        self.committed: Committed | None = None

    def open(self, beat: Beat, fault: Faults | None = None) -> None:
        self._beat = beat
        self._fault = fault
        self._bell = self._new_bell()
        around_forks(
            self,
            before=lambda store: store.pause(),
            in_parent=lambda store: store.resume(),
            in_child=lambda store: store.forget_parent(),
        )
        self._start()

    def submit(self, request: Any, waiter: Waiter) -> None:
        (self._writer or self._start()).submit(request, waiter)

    def ask_within(self, transaction: Any, request: Request) -> Answer:
        return within.ask(transaction, request, self._own_setting(), self.dialect)

    async def aask_within(self, transaction: Any, request: Request) -> Answer:
        return await within.aask(transaction, request, self._own_setting(), self.dialect)

    def purge_epoch(self) -> int | None:
        return None

    def list(self, query: Query, now: int) -> Looked[Found]:
        return self._administration.list(query, now)

    def read(self, request: Any) -> Any:
        return self._administration.read(request)

    def sweep(self, now: int, batch: int) -> int:
        return self._administration.sweep(now, batch)

    def count_expired(self, now: int) -> int:
        return self._administration.count_expired(now)

    def sweep_due(self, now: int, interval: int) -> bool:
        return self._administration.sweep_due(now, interval)

    def retention(self) -> dict[str, float]:
        return self._administration.retention()

    def set_retention(self, name: str, seconds: float) -> None:
        self._administration.set_retention(name, seconds)

    def ring(self) -> None:
        self._bell.ring()

    def listen(self, heard: Heard) -> Callable[[], None]:
        if self._writer is None:
            self._start()
        return self._bell.listen(heard)

    def close(self) -> None:
        with self._starting:
            if self._closed or self._writer is None:
                return
            self._closed = True
        self._writer.close()
        self._bell.close()
        self._leave()

    def setting(self) -> Setting:
        return Setting(self.owner, self._is_gone, self.alone)

    # -- what a dialect provides ------------------------------------------------------------

    @abstractmethod
    def _arrive(self) -> None:
        """Make the tables when they are missing, and register this process as an owner."""

    @abstractmethod
    def _session(self) -> Session:
        """A connection of its own for one writer thread."""

    @abstractmethod
    def _new_bell(self) -> Bell:
        """By which processes on this store call each other."""

    @abstractmethod
    def transact(self, work: Callable[[Run], Any], *, write: bool, durable: bool = False) -> Any:
        """Run `work` in a transaction on the connection for administration."""

    @abstractmethod
    def _is_gone(self, row: Sequence[Any]) -> bool:
        """Whether the owner in the last columns of a record is gone."""

    @abstractmethod
    def _leave(self) -> None:
        """Let what this process holds lapse at once, and close every connection."""

    def _bury(self, name: str) -> None:  # noqa: B027 - most dialects have nothing else to remove
        """The owner of that name is forgotten; remove what else there is of it."""

    def pause(self) -> None:
        """Before a fork: nothing is under way that a child would find in the middle."""
        self._starting.acquire()

    def resume(self) -> None:
        self._starting.release()

    def forget_parent(self) -> None:
        """A forked child must not touch its parent's connections; it is another owner."""
        self._starting = threading.Lock()
        self._writer = None
        self._bell.forget()
        self._bell = self._new_bell()
        self._beaten_at = self._woke_at = _NEVER

    # -- one life ---------------------------------------------------------------------------

    @cached_property
    def _administration(self) -> Administration:
        return Administration(self.transact, self._own_setting, self._bury)

    def _own_setting(self) -> Setting:
        """Of this process, also when it is a child that has not claimed anything so far."""
        if self._writer is None:
            self._start()
        return self.setting()

    def _start(self) -> Writer:
        with self._starting:
            if self._closed:
                raise LedgerClosed
            if self._writer is None:
                self._arrive()
                self._writer = Writer(
                    self._line,
                    threads=self.writers,
                    heartbeat=self._heartbeat,
                    committed=self.committed,
                )
                self._writer.start()
            return self._writer

    def _has_beaten(self, at: int) -> None:
        """Remember when this process last gave a sign of life, by the steady clock."""
        if self._beaten_at != _NEVER and at - self._beaten_at > self.lease:
            self._woke_at = at
        self._beaten_at = at

    def _may_judge(self, now: int) -> bool:
        """Whether the silence of others means something. A process that was stopped, suspended
        with its machine or cut off was silent itself: it gives everybody a lease to beat again."""
        return now - self._beaten_at <= self.lease < now - self._woke_at

    def _line(self) -> Session:
        session = self._session()
        return session if self._fault is None else WatchedSession(session, self._fault)

    def _floor(self, retention: Sequence[tuple[str, float]]) -> int:
        """The lowest number this process may still hold; the ledger learns the classes."""
        return max(0, self._beat(dict(retention)) - _FLOOR_MARGIN)
