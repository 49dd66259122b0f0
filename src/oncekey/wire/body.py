"""A request's body, read once and handed on: small ones stay in memory, large ones go to a file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO

from oncekey.wire.fingerprint import BodyDigest

# Up to here a body is compared by value; parsing more would stall everybody else.
MEMORY_LIMIT = 4 << 20
_CHUNK = 64 << 10


class Body:
    """Feed it, then ask for `content` to compare and `chunks` to pass on."""

    def __init__(self, content_type: bytes, limit: int) -> None:
        self._content_type = content_type
        self._limit = limit
        self._pieces: list[bytes] = []
        self._file: IO[bytes] | None = None
        self._digest: BodyDigest | None = None
        self.size = 0

    def __len__(self) -> int:
        return self.size

    def feed(self, chunk: bytes) -> bool:
        """False when the body is larger than allowed."""
        self.size += len(chunk)
        if self.size > self._limit:
            return False
        if self._file is None and self.size > MEMORY_LIMIT:
            self._spill()
        if self._file is not None and self._digest is not None:
            self._file.write(chunk)
            self._digest.feed(chunk)
        else:
            self._pieces.append(chunk)
        return True

    @property
    def content(self) -> bytes | BodyDigest:
        if self._digest is not None:
            return self._digest
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    def chunks(self) -> Iterator[bytes]:
        if self._file is None:
            yield b"".join(self._pieces)
            return
        self._file.seek(0)
        while chunk := self._file.read(_CHUNK):
            yield chunk

    def open(self) -> IO[bytes]:
        """The body as a file, for servers that want one."""
        if self._file is None:
            self._file = tempfile.SpooledTemporaryFile(max_size=MEMORY_LIMIT)  # noqa: SIM115
            self._file.write(b"".join(self._pieces))
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _spill(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the request
        self._digest = BodyDigest(self._content_type)
        for piece in self._pieces:
            self._file.write(piece)
            self._digest.feed(piece)
        self._pieces.clear()
