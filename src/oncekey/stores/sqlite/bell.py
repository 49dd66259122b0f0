"""The bell of processes on one machine: a socket for each that listens, beside its lock."""

from __future__ import annotations

import os
import secrets
import socket
from contextlib import suppress
from pathlib import Path

from oncekey.stores.bell import PAUSE, Bell, Heard, log

# The longest name the kernels take for a socket, in bytes.
_LONGEST = 103
_PREFIX = "bell-"
_RING = b"1"


class SqliteBell(Bell):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._name = f"{_PREFIX}{secrets.token_hex(8)}"
        self._ear: socket.socket | None = None
        self._mouth: socket.socket | None = None
        self._handle: int | None = None

    def ring(self) -> None:
        if self.closing.is_set():
            return
        with suppress(OSError):
            mouth = self._mouth = self._mouth or _socket()
            for name in os.listdir(self._folder):  # noqa: PTH208 - names are all it needs
                if name.startswith(_PREFIX) and name != self._name:
                    self._ring_at(name, mouth)

    def forget(self) -> None:
        self._close_all()

    def _begin(self, heard: Heard) -> None:
        with self._starting:
            if self._ear is None:
                self._ear = self._bound()
        if self._ear is not None:
            self._start()
        heard()

    def _bound(self) -> socket.socket | None:
        """Whoever rings before the socket is there takes its file for that of a dead process: so
        the file gets its name afterwards."""
        ear, unborn = _socket(), f"new-{self._name}"
        try:
            ear.setblocking(True)
            ear.bind(self._address_of(unborn))
            (self._folder / unborn).rename(self._folder / self._name)
        except OSError as error:
            log.warning("other processes cannot ring here: %s", error)
            ear.close()
            return None
        return ear

    def _run(self) -> None:
        ear = self._ear
        assert ear is not None
        while True:
            # Shut down, it gives nothing at once.
            ear.recv(len(_RING))
            with suppress(BlockingIOError):
                while ear.recv(len(_RING), socket.MSG_DONTWAIT):
                    pass
            if self.closing.is_set():
                return
            self.listeners.tell()
            self.closing.wait(PAUSE)

    def _wake(self) -> None:
        if self._ear is not None:
            with suppress(OSError):
                self._ear.shutdown(socket.SHUT_RD)

    def _end(self) -> None:
        if self._ear is not None:
            (self._folder / self._name).unlink(missing_ok=True)
        self._close_all()

    def _close_all(self) -> None:
        for each in (self._ear, self._mouth):
            if each is not None:
                each.close()
        self._ear = self._mouth = None
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def _ring_at(self, name: str, mouth: socket.socket) -> None:
        try:
            mouth.sendto(_RING, self._address_of(name))
        except ConnectionRefusedError:
            # Nobody has that socket any more.
            (self._folder / name).unlink(missing_ok=True)
        except OSError:
            # One that is full has enough to hear.
            return

    def _address_of(self, name: str) -> str:
        address = str(self._folder / name)
        if len(os.fsencode(address)) <= _LONGEST:
            return address
        if self._handle is None:
            self._handle = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._handle}/{name}"


def _socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made
