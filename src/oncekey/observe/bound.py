"""How many values a label may have: the first ones stand for themselves, in all processes of a
server alike, so that what they count adds up."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import IO

_TRIES, _PAUSE = 10, 0.0005


class Bound:
    """`file` is where processes share what they have admitted; None for a process alone."""

    def __init__(self, most: int, file: Path | None = None) -> None:
        self._most = most
        self._file = file
        self._known: set[str | tuple[str, ...]] = set()

    def admits(self, value: str | tuple[str, ...]) -> bool:
        if value in self._known:
            return True
        if len(self._known) < self._most:
            self._admit(value)
        return value in self._known

    def _admit(self, value: str | tuple[str, ...]) -> None:
        if self._file is None:
            self._known.add(value)
            return
        try:
            self._share(value)
        except (OSError, ValueError):
            # The server may be ending, and its folder with it; or the disk is full.
            self._known.add(value)

    def _share(self, value: str | tuple[str, ...]) -> None:
        """Read what others have admitted, and add to it what there is room for."""
        assert self._file is not None
        with os.fdopen(os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
            _lock(file)
            self._known.update(_value_in(line) for line in file)
            if value not in self._known and len(self._known) < self._most:
                file.write(json.dumps(value) + "\n")
                self._known.add(value)


def _lock(file: IO[str]) -> None:
    """Held for as long as a few lines take. Whoever does not get it soon goes on alone: a process
    that is frozen while it has it must not hold up the requests of others."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE)
        else:
            return
    raise BlockingIOError


def _value_in(line: str) -> str | tuple[str, ...]:
    read = json.loads(line)
    return tuple(read) if isinstance(read, list) else str(read)
