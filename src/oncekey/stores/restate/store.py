"""The Restate store: a loop in a thread of its own that asks, is called back, and gives signs of
life."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any

from oncekey.core.clock import Clock
from oncekey.core.errors import ConfigurationError, LedgerClosed, OnceKeyError
from oncekey.core.fork import around_forks
from oncekey.core.looking import Looked
from oncekey.core.ports import Answer, Beat, Committed, Faults, Found, Query, Request, Waiter
from oncekey.stores.restate.cluster import Cluster
from oncekey.stores.restate.forward import Forwards
from oncekey.stores.restate.options import RestateOptions
from oncekey.stores.restate.place import RestatePlace
from oncekey.stores.restate.thread import LoopThread

log = logging.getLogger("oncekey")


class RestateStore:
    dispatches = True
    """Executions that are ready are not picked up: Restate calls whoever runs them."""
    committed: Committed | None = None
    """Here each request is a group of its own."""

    def __init__(
        self,
        place: RestatePlace,
        clock: Clock,
        *,
        lease: float = 15.0,
        heartbeat: float = 5.0,
        migrate: bool = True,
        options: RestateOptions | None = None,
    ) -> None:
        self.place = place
        self.options = options or RestateOptions()
        self.forwards = Forwards(
            place.space, clock, self.options.longest, is_awaited=self.options.has_edge
        )
        """Requests of an edge in this process, which may have another life of the store."""
        self.lease = lease
        self._heartbeat = heartbeat
        self._closed = False
        self._starting = threading.Lock()
        # Nothing is handed to the loop after it was told to close.
        self._door = threading.RLock()
        self._thread: LoopThread | None = None
        self._cluster: Cluster | None = None

    def open(self, beat: Beat, fault: Faults | None = None) -> None:
        self._beat = beat
        self._fault = fault
        around_forks(
            self,
            before=lambda store: store.pause(),
            in_parent=lambda store: store.resume(),
            in_child=lambda store: store.forget_parent(),
        )
        self._start()

    def submit(self, request: Any, waiter: Waiter) -> None:
        self._hand_over(lambda cluster: cluster.submit(request, waiter, self.committed))

    def ask_within(self, transaction: Any, request: Request) -> Answer:
        raise ConfigurationError(
            "restate:// has no transactions of an application; use sqlite:/// or postgresql://"
        )

    async def aask_within(self, transaction: Any, request: Request) -> Answer:
        return self.ask_within(transaction, request)

    def purge_epoch(self) -> int | None:
        return None

    def list(self, query: Query, now: int) -> Looked[Found]:
        found: Looked[Found] = self._run(lambda cluster: cluster.claims.listed(query, now))
        return found

    def read(self, request: Any) -> Any:
        return self._run(lambda cluster: cluster.answer(request))

    def sweep(self, now: int, batch: int) -> int:
        return int(self._run(lambda cluster: cluster.sweep(now, batch)))

    def count_expired(self, now: int) -> int:
        return int(self._run(lambda cluster: cluster.count_expired(now)))

    def sweep_due(self, now: int, interval: int) -> bool:
        return bool(self._run(lambda cluster: cluster.owners("turn", [now, interval])))

    def retention(self) -> dict[str, float]:
        found: dict[str, float] = self._run(lambda cluster: cluster.owners("retention", None))
        return found

    def set_retention(self, name: str, seconds: float) -> None:
        self._run(lambda cluster: cluster.set_retention(name, seconds))

    def retain(self, classes: Mapping[str, float]) -> None:
        """The configuration has these classes from now on."""
        self._run(lambda cluster: cluster.retain(classes))

    def describe(self) -> tuple[str, ...]:
        """For who has started this process."""
        return self.cluster.describe()

    def ring(self) -> None:
        with suppress(OnceKeyError):
            self._hand_over(lambda cluster: cluster.bell.ring())

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        listening = object()
        self._hand_over(lambda cluster: cluster.bell.add(listening, heard))

        def stop() -> None:
            with suppress(OnceKeyError):
                self._hand_over(lambda cluster: cluster.bell.remove(listening))

        return stop

    def close(self) -> None:
        with self._starting:
            thread, cluster = self._thread, self._cluster
            if self._closed or thread is None or cluster is None:
                self._closed = True
                return
            with self._door:
                self._closed = True
        try:
            thread.run(cluster.close())
        except OnceKeyError as error:
            # A cluster that is away sees us silent; that is as good, only later.
            log.info("Restate was not told that this process leaves: %s", error)
        thread.stop()

    @property
    def owner(self) -> int:
        return self._life()[1].link.owner

    @property
    def cluster(self) -> Cluster:
        """What serves and asks, for the engine and the edge; its parts belong to its loop."""
        return self._life()[1]

    def run(self, work: Callable[[Cluster], Any]) -> Any:
        """Do it on the loop of the store, and wait for it, in a thread."""
        return self._run(work)

    async def arun(self, work: Callable[[Cluster], Any]) -> Any:
        """As `run`, from another event loop."""
        return await asyncio.wrap_future(self._begin(work))

    # -- one life ---------------------------------------------------------------------------

    def _hand_over(self, work: Callable[[Cluster], None]) -> None:
        thread, cluster = self._life()
        with self._door:
            if self._closed:
                raise LedgerClosed
            thread.loop.call_soon_threadsafe(work, cluster)

    def _run(self, work: Callable[[Cluster], Any]) -> Any:
        future = self._begin(work)
        try:
            return future.result()
        except CancelledError:
            raise LedgerClosed from None

    def _begin(self, work: Callable[[Cluster], Any]) -> Future[Any]:
        thread, cluster = self._life()
        with self._door:
            if self._closed:
                raise LedgerClosed
            return asyncio.run_coroutine_threadsafe(work(cluster), thread.loop)

    def _life(self) -> tuple[LoopThread, Cluster]:
        thread, cluster = self._thread, self._cluster
        if thread is None or cluster is None or self._closed:
            return self._start()
        return thread, cluster

    def _start(self) -> tuple[LoopThread, Cluster]:
        with self._starting:
            if self._closed:
                raise LedgerClosed
            if self._thread is None or self._cluster is None:
                thread = LoopThread("oncekey-restate")
                try:
                    self._cluster = thread.run(self._arrive(thread))
                except BaseException:
                    thread.stop()
                    raise
                self._thread = thread
            return self._thread, self._cluster

    async def _arrive(self, thread: LoopThread) -> Cluster:
        cluster = Cluster(
            self.place,
            thread,
            lease=self.lease,
            heartbeat=self._heartbeat,
            fault=self._fault,
            options=self.options,
            forwards=self.forwards,
        )
        try:
            await cluster.open(self._beat)
        except BaseException:
            # Whoever tries again listens at the same address.
            await cluster.hang_up()
            raise
        return cluster

    def pause(self) -> None:
        """Before a fork: no life is about to begin or to end."""
        self._starting.acquire()
        self._door.acquire()

    def resume(self) -> None:
        self._door.release()
        self._starting.release()

    def forget_parent(self) -> None:
        """A forked child is another owner, on connections of its own."""
        self.forwards.forget()
        self._starting, self._door = threading.Lock(), threading.RLock()
        if self._cluster is not None:
            self._cluster.endpoint.let_go()
        self._thread = self._cluster = None
