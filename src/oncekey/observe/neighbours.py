"""The processes of one server add up: each writes what it counts to a folder that only they see.

A process that has ended goes on counting by what it wrote last. Whoever tells of itself writes
first, so that no sum is ever smaller than one that was told.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
from contextlib import suppress
from pathlib import Path

import msgspec

from oncekey.observe.meter import Meter
from oncekey.observe.snapshot import Snapshot, of_the_dead, summed

_WRITTEN, _ALIVE = ".counts", ".alive"

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Snapshot).decode


class Neighbours:
    """`folder` None for a process without any."""

    def __init__(self, meter: Meter, folder: Path | None) -> None:
        self._meter = meter
        self._folder = folder
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._last = b""
        self._known: dict[str, tuple[int, Snapshot]] = {}
        self._lock = threading.Lock()
        self._alive: int | None = None
        if folder is not None:
            # The lock ends with the process, however that ends.
            self._alive = os.open(folder / (self._name + _ALIVE), os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._alive, fcntl.LOCK_EX)

    def total(self) -> Snapshot:
        """Of all processes there are and were. Blocks for a few reads of files."""
        with self._lock:
            own = self._write()
            return summed([own, *self._others()])

    def write(self) -> None:
        """Leave what this process counts to the others."""
        with self._lock:
            self._write()

    def close(self) -> None:
        self.write()
        if self._alive is not None:
            os.close(self._alive)
            self._alive = None

    def _write(self) -> Snapshot:
        own = self._meter.snapshot()
        if self._folder is None:
            return own
        written = _encode(own)
        if written != self._last:
            path = self._folder / (self._name + _WRITTEN)
            aside = path.with_suffix(".new")
            # The server may be ending, and its folder with it; or the disk is full.
            with suppress(OSError):
                aside.write_bytes(written)
                aside.replace(path)
                self._last = written
        return own

    def _others(self) -> list[Snapshot]:
        if self._folder is None:
            return []
        paths = [each for each in self._folder.glob("*" + _WRITTEN) if each.stem != self._name]
        found = [self._read(each) for each in paths]
        return [each for each in found if each is not None]

    def _read(self, path: Path) -> Snapshot | None:
        try:
            # Before it is read: a process that ends meanwhile has written all it will.
            lives = _is_held(path.with_suffix(_ALIVE))
            changed_at = path.stat().st_mtime_ns
            known = self._known.get(path.stem)
            if known is None or known[0] != changed_at:
                known = self._known[path.stem] = (changed_at, _decode(path.read_bytes()))
        except (OSError, msgspec.DecodeError):
            known = self._known.get(path.stem)
            return None if known is None else of_the_dead(known[1])
        return known[1] if lives else of_the_dead(known[1])


def _is_held(path: Path) -> bool:
    try:
        lock = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        # Whoever cleared it away did not end the process.
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False
