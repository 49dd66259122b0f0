"""The tables of a PostgreSQL database, for those who look after them: version and migration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from oncekey.core.errors import StoreUnavailable
from oncekey.stores import schema
from oncekey.stores.queries import load

_CONNECT_SECONDS = 10


def version_on(url: str) -> int:
    """0 when there are none."""
    with _connected(url) as connection:
        return schema.version_of("postgres", _execute_on(connection))


def migrate_on(url: str) -> list[int]:
    """Run what is missing, all or nothing. Answers the versions that were run."""
    with _connected(url) as connection:
        # Whoever else migrates now waits here and then finds nothing to do.
        connection.execute(load("postgres")["lock_schema"])
        return schema.migrate("postgres", _execute_on(connection), _script_on(connection))


@contextmanager
def _connected(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection in one transaction, committed at the end."""
    try:
        with psycopg.connect(url, connect_timeout=_CONNECT_SECONDS) as connection:
            yield connection
    except psycopg.Error as error:
        raise StoreUnavailable(f"PostgreSQL: {_one_line(error)}") from error


def _execute_on(connection: psycopg.Connection[Any]) -> schema.Execute:
    def execute(sql: str, values: dict[str, Any]) -> list[Any]:
        cursor = connection.execute(sql.encode(), values)
        return cursor.fetchall() if cursor.description else []

    return execute


def _script_on(connection: psycopg.Connection[Any]) -> schema.Script:
    def run(script: str) -> None:
        connection.execute(script.encode())

    return run


def _one_line(error: psycopg.Error) -> str:
    return " ".join(str(error).split())
