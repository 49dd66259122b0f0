"""Files that only their owner can reach, from the first moment and whatever the umask. One that is
there already stays as its owner made it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def make_private(path: Path) -> None:
    """An empty file, unless there is one. Raises `OSError`.

    A file that is there is not even opened: to close it again would let go of every lock that
    SQLite holds on it in this process, and others would take its log away.
    """
    # Where a link leads to nothing yet, the file is made where it leads to.
    place = os.path.realpath(path)
    with suppress(FileExistsError):
        os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
