"""Moves what is committed from the log into the database, beside the writer instead of under it.

Whoever commits would otherwise do it every few thousand pages, and everybody waits for that. The
writer's own limit is higher and stays: it bounds the log when this thread cannot keep up.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress

from oncekey.core.errors import OnceKeyError

# A few thousand pages: while there are few keys the same ones come again and again.
_REQUESTS = 8000
_JOIN_TIMEOUT = 10.0


class Checkpointer:
    """`checkpoint` does the work, on a connection that is not the writer's."""

    def __init__(self, checkpoint: Callable[[], None]) -> None:
        self._checkpoint = checkpoint
        self._written = 0
        self._due = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None

    def wrote(self, requests: int) -> None:
        """Called by the writer after each group."""
        self._written += requests
        if self._written >= _REQUESTS:
            self._written = 0
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, daemon=True, name="oncekey-checkpoint"
                )
                self._thread.start()
            self._due.set()

    def close(self) -> None:
        self._closing = True
        self._due.set()
        if self._thread is not None:
            self._thread.join(_JOIN_TIMEOUT)

    def _run(self) -> None:
        while True:
            self._due.wait()
            if self._closing:
                return
            self._due.clear()
            self.run_once()

    def run_once(self) -> None:
        # Another process may be at it, or the disk full: the next one does what this one could not.
        with suppress(sqlite3.Error, OnceKeyError):
            self._checkpoint()
