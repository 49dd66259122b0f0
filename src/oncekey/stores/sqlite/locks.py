"""What processes that share a file tell each other without the database: a fair gate, who is alive,
and when something was purged. All of it is freed by the kernel when a process dies."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_WORD = 8

# The module `fcntl` lets go of the interpreter around each call, and under load a thread waits
# milliseconds to get it back. Taking a free lock and giving it back need microseconds.
_flock = ctypes.PyDLL(None).flock


def folder_of(database: Path) -> Path:
    """Where processes that share a file meet: beside it."""
    return database.with_name(database.name + "-locks")


class Locks:
    def __init__(self, database: Path) -> None:
        self._folder = folder_of(database)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._gate = self._open("gate")
        # The kernel's lock is the process's; its threads keep each other out by this one.
        self._turn = threading.Lock()
        self._word = _map_word(self._open("purges"))
        self._live()

    @contextmanager
    def gate(self) -> Iterator[None]:
        """One writer at a time, first come, first served: SQLite's own waiting is a lottery."""
        with self._turn:
            if _flock(self._gate, fcntl.LOCK_EX | fcntl.LOCK_NB):
                fcntl.flock(self._gate, fcntl.LOCK_EX)
            try:
                yield
            finally:
                _flock(self._gate, fcntl.LOCK_UN)

    def is_dead(self, name: str) -> bool:
        """Whether the process of that name let go of its lock. Never guessed from a process id."""
        if name == self.name:
            return False
        try:
            handle = os.open(self._folder / f"owner-{name}", os.O_RDWR)
        except FileNotFoundError:
            # Swept, or never on this machine: its heartbeat has to tell.
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            return True
        finally:
            os.close(handle)

    def rename(self) -> None:
        """Begin a new life under a new name, when the old one has been buried."""
        os.close(self._alive)
        self._live()

    def bury(self, name: str) -> None:
        with suppress(FileNotFoundError):
            (self._folder / f"owner-{name}").unlink()

    def epoch(self) -> int | None:
        """Changes with each purge; odd while one is under way or was cut off."""
        value: int = self._word[0]
        return None if value & 1 else value

    @contextmanager
    def purging(self) -> Iterator[None]:
        """Inside the gate. Remembered answers are not used from the first line to the last."""
        value = self._word[0] | 1
        self._write(value)
        try:
            yield
        finally:
            self._write(value + 1)

    def heal(self) -> None:
        """Inside the gate: nobody purges now, so a purge that was cut off is over."""
        if self.epoch() is None:
            with self.purging():
                pass

    def close(self) -> None:
        os.close(self._alive)
        self.bury(self.name)
        os.close(self._gate)

    def forget(self) -> None:
        """In a forked child: the locks stay the parent's alone, and die with it."""
        os.close(self._alive)
        os.close(self._gate)

    def _live(self) -> None:
        self.name = secrets.token_hex(8)
        self._alive = self._open(f"owner-{self.name}")
        fcntl.flock(self._alive, fcntl.LOCK_EX)

    def _write(self, value: int) -> None:
        self._word[0] = value

    def _open(self, name: str) -> int:
        return os.open(self._folder / name, os.O_RDWR | os.O_CREAT, 0o600)


def _map_word(handle: int) -> memoryview:
    """Eight bytes that all processes share, as one number."""
    try:
        if os.fstat(handle).st_size < _WORD:
            os.ftruncate(handle, _WORD)
        return memoryview(mmap.mmap(handle, _WORD)).cast("Q")
    finally:
        os.close(handle)
