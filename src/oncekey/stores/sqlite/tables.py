"""The tables of a SQLite file, for those who look after them: version and migration."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from oncekey.core.errors import StoreUnavailable
from oncekey.stores import schema
from oncekey.stores.sqlite.connection import connect, script_of


def version_at(path: Path) -> int:
    """0 when there are none, or no file; looking does not make it."""
    if not path.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as found:
            return schema.version_of("sqlite", _execute_on(found))
    except sqlite3.Error as error:
        raise StoreUnavailable(f"SQLite file {path}: {error}") from error


def migrate_at(path: Path) -> list[int]:
    """Run what is missing, all or nothing. Answers the versions that were run."""
    connection = connect(path)
    try:
        connection.execute("BEGIN IMMEDIATE")
        done = schema.migrate("sqlite", _execute_on(connection), script_of(connection))
        connection.execute("COMMIT")
        return done
    except sqlite3.Error as error:
        raise StoreUnavailable(f"SQLite file {path}: {error}") from error
    finally:
        connection.close()


def _execute_on(connection: sqlite3.Connection) -> schema.Execute:
    def execute(sql: str, values: dict[str, Any]) -> list[Any]:
        return connection.execute(sql, values).fetchall()

    return execute
