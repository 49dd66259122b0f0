"""Connections that were cut: the other end may still be at work, and nobody knows at what."""

from __future__ import annotations

import threading
from typing import Any

from oncekey.core.errors import StoreUnavailable
from oncekey.stores.postgres.connection import QUERIES, Connection


class Severed:
    """A request is tried again only after the end that may still carry it out is gone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._backends: list[dict[str, Any]] = []

    def add(self, backend: dict[str, Any]) -> None:
        with self._lock:
            self._backends.append(backend)

    def end_all(self, connection: Connection) -> None:
        """End on the server what the network has cut, and wait until it has ended."""
        if not self._backends:
            return
        with self._lock:
            while self._backends:
                row = connection.execute(QUERIES["end_backend"], self._backends[-1]).fetchone()
                if row is not None and not row[0]:
                    raise StoreUnavailable("PostgreSQL: a cut connection does not end")
                self._backends.pop()


def backend_of(connection: Connection) -> dict[str, Any]:
    """Names the server's end of a connection, with its start: process numbers are used again."""
    row = connection.execute(QUERIES["backend"]).fetchone()
    assert row is not None
    return {"pid": row[0], "backend_start": row[1]}
