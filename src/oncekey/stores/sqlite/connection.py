"""Connections to a SQLite file, each set up the same way."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from oncekey.core.errors import ConfigurationError, StoreUnavailable

_OLDEST = (3, 38, 0)
# Other programs may write to the same file; ours queue at the gate and never wait here.
_BUSY_SECONDS = 10.0
# Far above what the checkpointer lets come together: only a log it cannot keep up with gets here.
_CHECKPOINT_PAGES = 16000
# The digests are random: with millions of keys the default of 2 MiB reads a page for each claim.
_CACHE_KIB = 65536


def connect(
    path: Path, *, synchronous: str = "FULL", prepare: Sequence[str] = ()
) -> sqlite3.Connection:
    """`prepare`: statements that the connection cannot do without."""
    if sqlite3.sqlite_version_info < _OLDEST:
        needed = ".".join(map(str, _OLDEST))
        raise ConfigurationError(
            f"SQLite {needed} or newer is needed, not {sqlite3.sqlite_version}"
        )
    try:
        connection = sqlite3.connect(
            path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise StoreUnavailable(f"SQLite file {path}: {error}") from error
    settings = (
        "PRAGMA journal_mode = WAL",
        f"PRAGMA synchronous = {synchronous}",
        f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}",
        f"PRAGMA cache_size = -{_CACHE_KIB}",
        "PRAGMA temp_store = MEMORY",
    )
    try:
        for setting in (*settings, *prepare):
            connection.execute(setting)
    except sqlite3.Error as error:
        connection.close()
        raise StoreUnavailable(f"SQLite file {path}: {error}") from error
    return connection


def is_unavailable(error: sqlite3.Error) -> bool:
    """Full disk, lock, damage: the store's fault. Anything else is a fault of the request."""
    return isinstance(error, sqlite3.OperationalError) or type(error) is sqlite3.DatabaseError


def script_of(connection: sqlite3.Connection) -> Callable[[str], None]:
    """Runs several statements inside the open transaction, which `executescript` would commit."""

    def run(script: str) -> None:
        statement = ""
        for line in script.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                connection.execute(statement)
                statement = ""

    return run
