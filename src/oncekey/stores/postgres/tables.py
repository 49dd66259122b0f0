"""The tables of a PostgreSQL database, for those who look after them: version and migration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from oncekey.stores import schema
from oncekey.stores.postgres.connection import QUERIES, Connection, Database, failure_of

# A migration may wait for another one, and may have much to rewrite; in milliseconds.
_TIMEOUT = 60_000


def version_on(url: str) -> int:
    """0 when there are none."""
    with _transaction(url) as connection:
        return schema.version_of("postgres", _execute_on(connection))


def migrate_on(url: str) -> list[int]:
    """Run what is missing, all or nothing. Answers the versions that were run."""
    with _transaction(url) as connection:
        # Whoever else migrates now waits here and then finds nothing to do.
        connection.execute(QUERIES["lock_schema"])
        return schema.migrate("postgres", _execute_on(connection), _script_on(connection))


@contextmanager
def _transaction(url: str) -> Iterator[Connection]:
    connection = Database(url).connect(statement_timeout=_TIMEOUT, lock_timeout=_TIMEOUT)
    try:
        with connection.transaction():
            yield connection
    except psycopg.Error as error:
        raise failure_of(error) or error from error
    finally:
        connection.close()


def _execute_on(connection: Connection) -> schema.Execute:
    def execute(sql: str, values: dict[str, Any]) -> list[Any]:
        cursor = connection.execute(sql.encode(), values)
        return cursor.fetchall() if cursor.description else []

    return execute


def _script_on(connection: Connection) -> schema.Script:
    def run(script: str) -> None:
        connection.execute(script.encode())

    return run
