"""Deleting what is expired, a little at a time. Correctness never waits for it: expiry is exact."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from oncekey.core.clock import Clock
from oncekey.core.errors import OnceKeyError
from oncekey.core.ports import Progress, Store

# Small enough that a claim waiting behind one batch hardly notices it.
BATCH = 100

Swept = Callable[[int, float], None]
"""Told how many were deleted, and how long that took."""


class Sweep:
    """One pass over everything expired at this moment, resting as long as it works."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        batch: int = BATCH,
        rest: Callable[[float], None] = time.sleep,
        told: Swept | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._batch = batch
        self._rest = rest
        self._told = told

    def run(self, progress: Progress | None = None) -> int:
        now = self._clock.now()
        total = self._store.count_expired(now) if progress else 0
        done = 0
        first = began = time.monotonic()
        while swept := self._store.sweep(now, self._batch):
            done += swept
            if progress:
                progress(done, max(total, done))
            self._rest(time.monotonic() - began)
            began = time.monotonic()
        if self._told is not None:
            self._told(done, time.monotonic() - first)
        return done


class Sweeper:
    """A pass every `interval` seconds, by whichever process of the store comes first."""

    def __init__(
        self, store: Store, clock: Clock, interval: float, told: Swept | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._interval = interval
        self._told = told
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="oncekey-sweeper", daemon=True)

    def start(self) -> None:
        """Only the first time; not at all when the interval is 0."""
        if self._interval > 0 and self._thread.ident is None:
            self._thread.start()

    def renewed(self) -> Sweeper:
        """The same, not started."""
        return Sweeper(self._store, self._clock, self._interval, self._told)

    def stop(self) -> None:
        self._stop.set()

    def run_once(self) -> int:
        if not self._store.sweep_due(self._clock.now(), int(self._interval * 1000)):
            return 0
        return Sweep(self._store, self._clock, told=self._told).run()

    def _run(self) -> None:
        while not self._stop.wait(self._interval):
            try:
                self.run_once()
            except OnceKeyError:
                # The store is away; what is expired waits for the next turn.
                continue
