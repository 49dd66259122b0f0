"""The ledger: begin, settle, replay, recover. Decisions are made here, storage elsewhere."""

from __future__ import annotations

import asyncio
import atexit
import random
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from oncekey.core.beginning import Beginning, Sent
from oncekey.core.cache import ReplayCache
from oncekey.core.claim import Claim
from oncekey.core.clock import Clock, SystemClock
from oncekey.core.decision import Decision, Mismatch, Proceed, Replay
from oncekey.core.events import Observer, Seen, Tally, Watch
from oncekey.core.fork import around_forks
from oncekey.core.identifier import OperationNumbers
from oncekey.core.looking import Looked
from oncekey.core.model import Operation, Record, Ref, make
from oncekey.core.once import Once
from oncekey.core.ports import (
    Abandon,
    Codec,
    Faults,
    Found,
    Held,
    Insert,
    Peek,
    Progress,
    Purge,
    Query,
    Release,
    Replace,
    Request,
    Store,
    Take,
)
from oncekey.core.recovery import Recover
from oncekey.core.retention import Retention
from oncekey.core.steps import Driver, Nap, Pauses, Steps, Watchers
from oncekey.core.sweep import Sweep, Sweeper
from oncekey.core.telling import tell_decision
from oncekey.core.waiting import ThreadWaiter

_CLOSING_PAUSE = 0.01


class Ledger:
    """One per process and store. Every verb is blocking; with an `a` in front it is async.

    `cache_bytes` bounds what is kept in memory for replays, `sweep_interval` is in seconds, 0 for
    never; `observer` is told of events.
    """

    def __init__(
        self,
        store: Store,
        *,
        codec: Codec,
        clock: Clock | None = None,
        retention: Mapping[str, float] | None = None,
        cache_bytes: int = 64 << 20,
        sweep_interval: float = 300.0,
        randbits: Callable[[int], int] = random.getrandbits,
        faults: Faults | None = None,
        observer: Observer | Watch | None = None,
    ) -> None:
        self.store = store
        self.codec = codec
        self.clock: Clock = clock or SystemClock()
        self.retention_classes = Retention(retention)
        self.fault = faults
        self.watch = observer if isinstance(observer, Watch) else None
        """Who sees whole requests; None when nobody does."""
        self.observe: Observer = (
            observer.observe if isinstance(observer, Watch) else observer or Tally()
        )
        if self.watch is not None:
            store.committed = self.watch.committed
        self._numbers = OperationNumbers(randbits)
        self._watchers = Watchers()
        self._held: dict[int, Claim] = {}
        # What this process claims or runs; a hint for those who wait, never an answer.
        self._running: dict[bytes, Operation] = {}
        self.cache = ReplayCache(cache_bytes, store.purge_epoch)
        self.closed = False
        self._driver = Driver(store, self._watchers, self._orphaned)
        self.run = self._driver.run
        self.arun = self._driver.arun
        self.send = self._driver.send
        self._sweeper = Sweeper(store, self.clock, sweep_interval, self._swept)
        store.open(self._beat, faults)
        around_forks(self, in_child=Ledger._forget_parent)
        # A process that exits in good order lets go of what it holds; a killed one lapses.
        atexit.register(store.close)

    # -- verbs ---------------------------------------------------------------------------

    def begin(
        self,
        operation: Operation,
        *,
        wait: float = 0.0,
        recover: Recover | None = None,
        transaction: Any = None,
        seen: Seen | None = None,
    ) -> Decision:
        """Claim the operation, or learn what became of it; `wait` is for one that is in flight.
        `seen` is the request that it is for."""
        digest = operation.ref.digest
        decision: Decision | None = self.recall(operation, digest)
        if decision is None:
            beginning = Beginning(self, operation, digest, recover, transaction, seen)
            with _claiming(seen):
                decision = self.run(beginning.steps(wait))
        tell_decision(self.observe, operation, decision, seen)
        return decision

    async def abegin(
        self,
        operation: Operation,
        *,
        wait: float = 0.0,
        recover: Recover | None = None,
        transaction: Any = None,
        seen: Seen | None = None,
        observed: bool = True,
    ) -> Decision:
        """`observed` is False for what is told of in another way."""
        beginning = Beginning(
            self, operation, operation.ref.digest, recover, transaction, seen, observed=observed
        )
        if seen is None or seen.span is None:
            decision = await self._abegin(beginning, operation, wait)
        else:
            with _claiming(seen):
                decision = await self._abegin(beginning, operation, wait)
        if observed:
            tell_decision(self.observe, operation, decision, seen)
        return decision

    async def _abegin(self, beginning: Beginning, operation: Operation, wait: float) -> Decision:
        digest = beginning.digest
        known = self.recall(operation, digest)
        if known is not None:
            return known
        if wait >= Pauses.LONGEST and self.runs(operation, digest):
            asked_at = self.clock.steady()
            record: Record | None = await self._watchers.join(digest)
            if record is not None and record.fingerprint == operation.fingerprint:
                return Replay(record)
            wait = max(0.0, wait - (self.clock.steady() - asked_at) / 1000)
        sent = None
        ours = wait > 0 and digest in self._running
        if beginning.transaction is None and not self.closed and not ours:
            # Most keys are new, and then there is nothing to decide.
            epoch, insert = self.cache.epoch(), self.insert_of(operation, digest)
            self._running.setdefault(digest, operation)
            waiter = self.send(insert)
            try:
                answer = await waiter.future
            except BaseException:
                waiter.desert()
                self._give_up(operation, digest)
                raise
            if type(answer) is Held:
                return self.proceed(insert, answer.fence)
            self._give_up(operation, digest)
            if isinstance(answer, BaseException):
                raise answer
            sent = Sent(insert, answer, epoch)
        return await self.arun(beginning.steps(wait, sent))

    def attach(self, ref: Ref | Operation, timeout: float) -> Record | None:
        """The settled record of `ref`, waiting for it; None when there is none by then. Of an
        operation, only what was asked for the same: another's answer is not its own."""
        return self.run(self._attach(ref, timeout))

    async def aattach(self, ref: Ref | Operation, timeout: float) -> Record | None:
        return await self.arun(self._attach(ref, timeout))

    def peek(self, ref: Ref | int) -> Record | None:
        """The record of `ref` (or of an operation number) as it is now; expired ones are gone."""
        return self.run(self._peek(ref))

    async def apeek(self, ref: Ref | int) -> Record | None:
        return await self.arun(self._peek(ref))

    def look(self, ref: Ref | int) -> Found | None:
        """As `peek`, with whether the one who runs it is gone."""
        return self.run(self._look(ref))

    async def alook(self, ref: Ref | int) -> Found | None:
        """As `apeek`, with whether the one who runs it is gone."""
        return await self.arun(self._look(ref))

    def purge(self, ref: Ref) -> bool:
        """Forget the key: the next request with it runs. False when there was nothing to forget."""
        return self.run(self._purge(ref))

    async def apurge(self, ref: Ref) -> bool:
        return await self.arun(self._purge(ref))

    def once(self, key: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call `function(*args)` once for `key`; everyone gets its result. Options: see `Once`."""
        return self.run(Once.of(options).steps(self, key, function, args, {}))

    async def aonce(
        self, key: str, function: Callable[..., Any], *args: Any, **options: Any
    ) -> Any:
        """`once` for async code; `function` may be plain or async."""
        return await self.arun(Once.of(options).steps(self, key, function, args, {}))

    # -- administration ------------------------------------------------------------------

    def list(self, query: Query) -> Looked[Found]:
        """A page of records, newest first, each with whether its holder is gone. Their outcomes
        have neither headers nor body."""
        return self.store.list(query, self.clock.now())

    async def aread(self, request: Any) -> Any:
        """The answer to a request that changes nothing, without a claim waiting for it."""
        return await asyncio.to_thread(self.store.read, request)

    def sweep(self, progress: Progress | None = None) -> int:
        """Delete every expired record, in small batches. Answers how many."""
        return Sweep(self.store, self.clock, told=self._swept).run(progress)

    def retention(self) -> dict[str, float]:
        """Seconds an outcome is kept, by class."""
        self.retention_classes.learn(self.store.retention())
        return self.retention_classes.seconds()

    def set_retention(self, name: str, seconds: float) -> None:
        """Change a class for outcomes settled from now on, in every process, without a restart."""
        self.retention_classes.update({name: seconds})
        self.store.set_retention(name, seconds)

    def close(self, grace: float = 10.0) -> None:
        """Give running operations `grace` seconds; what is still held then lapses at once."""
        deadline = time.monotonic() + grace
        self.closed = True
        while self._held and time.monotonic() < deadline:
            time.sleep(_CLOSING_PAUSE)
        self._close()

    async def aclose(self, grace: float = 10.0) -> None:
        """`close` for an event loop, on which running operations go on meanwhile."""
        deadline = time.monotonic() + grace
        self.closed = True
        while self._held and time.monotonic() < deadline:  # noqa: ASYNC110 - claims end in any thread
            await asyncio.sleep(_CLOSING_PAUSE)
        self._close()

    def _close(self) -> None:
        self._sweeper.stop()
        atexit.unregister(self.store.close)
        self.store.close()

    def recall(self, operation: Operation, digest: bytes) -> Replay | Mismatch | None:
        """The answer to an operation that is remembered as settled, without asking the store."""
        record = self.cache.get(digest, self.clock)
        if record is None:
            return None
        same = record.fingerprint == operation.fingerprint
        return Replay(record) if same else Mismatch(record)

    def remembers(self, digest: bytes, record: Record) -> bool:
        """Whether `record` is still the answer, as far as this process may answer by itself."""
        return self.cache.get(digest, self.clock) is record

    # -- the steps behind the verbs ------------------------------------------------------

    def _attach(self, ref: Ref | Operation, timeout: float) -> Steps[Record | None]:
        if isinstance(ref, Ref):
            return (yield from self._settled_at(ref.digest, timeout))
        record: Record | None = yield from self._settled_at(ref.ref.digest, timeout)
        return record if record is not None and record.fingerprint == ref.fingerprint else None

    def _settled_at(self, digest: bytes, timeout: float) -> Steps[Record | None]:
        pauses = Pauses(self.clock, timeout)
        while True:
            record = self.cache.get(digest, self.clock)
            if record is not None:
                return record
            found: Found | None = yield Peek(digest)
            if found is None or found.lapsed:
                return None
            if found.record.outcome is not None:
                return found.record if found.record.expires_at > self.clock.now() else None
            pause = pauses.next()
            if pause is None:
                return None
            settled = yield Nap(digest, pause)
            if isinstance(settled, Record):
                return settled

    def _peek(self, ref: Ref | int) -> Steps[Record | None]:
        found = yield from self._look(ref)
        return None if found is None else found.record

    def _look(self, ref: Ref | int) -> Steps[Found | None]:
        request = Peek(None, ref) if isinstance(ref, int) else Peek(ref.digest)
        found: Found | None = yield request
        if found is None:
            return None
        over = found.record.outcome is not None or found.lapsed
        return None if over and found.record.expires_at <= self.clock.now() else found

    def _purge(self, ref: Ref) -> Steps[bool]:
        digest = ref.digest
        done: bool = yield Purge(digest)
        self._watchers.wake(digest, None)
        return done

    # -- bookkeeping ---------------------------------------------------------------------

    def draw(self) -> int:
        """A number for something new."""
        return self._numbers.draw(self.clock.now())

    def insert_of(self, operation: Operation, digest: bytes) -> Insert:
        now = self.clock.now()
        kept = self.retention_classes.milliseconds(operation.retention)
        number = self._numbers.draw(now)
        return make(Insert, (number, digest, operation, now, now + kept))

    def proceed(self, insert: Insert, fence: int) -> Proceed:
        number, digest, operation, created_at, _ = insert
        if self.fault is not None:
            self.fault("after-claim")
        claim = self._held[number] = Claim(self, operation, digest, number, fence, created_at)
        self._running[digest] = operation
        return make(Proceed, (claim,))

    def ended(self, claim: Claim, settled: Record | None) -> None:
        """A claim of this process is concluded; whoever attached to it gets the answer."""
        self._held.pop(claim.id, None)
        self._running.pop(claim.digest, None)
        if claim.digest in self._watchers:
            self._watchers.wake(claim.digest, settled)

    def runs(self, operation: Operation, digest: bytes) -> bool:
        """Whether this process is about it already, so that whoever waits is woken when it ends."""
        running = self._running.get(digest)
        return running is not None and running.fingerprint == operation.fingerprint

    def _give_up(self, operation: Operation, digest: bytes) -> None:
        """Somebody else has the key after all; whoever counted on us must ask for itself."""
        if self._running.get(digest) is operation:
            del self._running[digest]
            self._watchers.wake(digest, None)

    def forget(self, request: Request) -> None:
        """Send a request without waiting for its answer."""
        self.store.submit(request, ThreadWaiter())

    def _orphaned(self, request: Request, answer: Any) -> None:
        """A claim arrived for a task that was cancelled meanwhile: nothing ran, give it back."""
        if isinstance(answer, Held):
            match request:
                case Insert(id=number) | Replace(insert=Insert(id=number)):
                    self.forget(Release(number, answer.fence))
                case Take(id=number):
                    self.forget(Abandon(number, answer.fence))
                case _:
                    raise AssertionError(request)

    def _forget_parent(self) -> None:
        """In a forked child: claims, waiters and threads are the parent's, and locks may be held
        by threads that are not here any more."""
        self._held.clear()
        self._running.clear()
        self._watchers.forget()
        self.cache.forget()
        self._numbers = self._numbers.renewed()
        self._sweeper = self._sweeper.renewed()

    def _swept(self, deleted: int, seconds: float) -> None:
        if self.watch is not None:
            self.watch.swept(deleted, seconds)

    def _beat(self, retention: Mapping[str, float]) -> int:
        """With each heartbeat: learn the retention classes, tell the lowest number still held."""
        self._sweeper.start()
        self.retention_classes.learn(retention)
        return min(self._held.copy(), default=self._numbers.floor(self.clock.now()))


def _claiming(seen: Seen | None) -> AbstractContextManager[None]:
    return nullcontext() if seen is None or seen.span is None else seen.span.part("claim")
