"""The bell: processes that share a store tell each other that there is something to look at."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from oncekey.core.errors import LedgerClosed

log = logging.getLogger("oncekey")

# Rings that follow each other are heard as one: so often at most, in seconds.
PAUSE = 0.005
JOIN_TIMEOUT = 5.0

Heard = Callable[[], None]


class Listeners:
    """Who listens in this process."""

    def __init__(self) -> None:
        self._all: dict[object, Heard] = {}

    def add(self, heard: Heard) -> Callable[[], None]:
        token = object()
        self._all[token] = heard

        def stop() -> None:
            self._all.pop(token, None)

        return stop

    def tell(self) -> None:
        for heard in list(self._all.values()):
            try:
                heard()
            except Exception:
                log.exception("a listener failed")


class Bell(ABC):
    """One per process and store. Whoever misses a ring looks by itself, a little later."""

    def __init__(self) -> None:
        self.listeners = Listeners()
        self.closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    @abstractmethod
    def ring(self) -> None:
        """Be heard by every other process. Never waits and never fails."""

    def listen(self, heard: Heard) -> Callable[[], None]:
        if self.closing.is_set():
            raise LedgerClosed
        stop = self.listeners.add(heard)
        self._begin(heard)
        return stop

    def close(self) -> None:
        self.closing.set()
        self._wake()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(JOIN_TIMEOUT)
        self._end()

    @abstractmethod
    def forget(self) -> None:
        """In a forked child: let go of what is the parent's without the parent's noticing."""

    @abstractmethod
    def _begin(self, heard: Heard) -> None:
        """See that others are heard; call `heard` once that is so."""

    @abstractmethod
    def _run(self) -> None:
        """What the thread does."""

    @abstractmethod
    def _wake(self) -> None:
        """Have the thread look around."""

    @abstractmethod
    def _end(self) -> None:
        """The thread is done: remove what is left."""

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self.closing.is_set():
                self._thread = threading.Thread(target=self._run, daemon=True, name="oncekey-bell")
                self._thread.start()
