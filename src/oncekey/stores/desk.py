"""One connection for what operators and timers do, beside those of the writer: opened when it is
needed, kept for a whole sweep, closed when it fails or nobody needs it any more."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from oncekey.core.errors import LedgerClosed

_IDLE_SECONDS = 10.0


class Closable(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


class Queue:
    """A lock that goes to whoever has waited for longest: who takes it again and again, as a count
    or a sweep does, would else keep all others waiting for its end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._waiting: deque[threading.Lock] = deque()

    def acquire(self) -> None:
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        try:
            turn.acquire()
        except BaseException:
            self._leave(turn)
            raise

    def release(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False

    def _leave(self, turn: threading.Lock) -> None:
        """Interrupted while it waited; the turn may have come in the same moment."""
        with self._lock:
            waits = turn in self._waiting
            if waits:
                self._waiting.remove(turn)
        if not waits:
            self.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Desk(Generic[C]):
    def __init__(self, connect: Callable[[], C]) -> None:
        self._connect = connect
        self._connection: C | None = None
        self._used_at = 0.0
        self._closed = False
        self._lock = Queue()

    @contextmanager
    def borrow(self) -> Iterator[C]:
        """The connection, for one caller at a time. After an error it is not used again."""
        with self._lock:
            if self._closed:
                raise LedgerClosed
            connection = self._connection or self._connect()
            self._connection = None
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            self._connection = connection
            self._used_at = time.monotonic()

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    def rest(self) -> None:
        """Close the connection when nobody has used it for a while."""
        if self._connection is not None and time.monotonic() - self._used_at > _IDLE_SECONDS:
            self.pause()
            self.resume()

    def close(self) -> None:
        """For good, as soon as whoever has the connection gives it back."""
        self.pause()
        self._closed = True
        self.resume()

    def pause(self) -> None:
        """Close the connection, and let nobody have one before `resume`."""
        self._lock.acquire()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def resume(self) -> None:
        self._lock.release()
