"""How to run SQL on a caller's blocking connection."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from functools import cache
from typing import Any

from oncekey.core.errors import ConfigurationError
from oncekey.stores.within.families import (
    check_dialect,
    check_open,
    check_sqlite,
    family_of,
    is_async,
)

Run = Callable[[str, dict[str, Any]], list[Any]]

# A claim writes; a transaction begun as a reader may find the file locked when it comes to that.
BEGIN_SQLITE = "BEGIN IMMEDIATE"
_PLACEHOLDER = re.compile(r"%\((\w+)\)s")


def runner_of(transaction: Any, dialect: str) -> Run:
    family = family_of(transaction)
    if is_async(transaction):
        raise ConfigurationError("an async connection needs the async form of this call")
    match family:
        case "sqlite3":
            return _sqlite_runner(transaction, dialect)
        case "psycopg":
            return _psycopg_runner(transaction, dialect)
        case "sqlalchemy":
            return sqlalchemy_runner(transaction, dialect)
        case "django":
            return _django_runner(transaction, dialect)


def _sqlite_runner(connection: sqlite3.Connection, dialect: str) -> Run:
    check_dialect(dialect, "sqlite")
    if not check_sqlite(connection):
        connection.execute(BEGIN_SQLITE)

    def run(sql: str, values: dict[str, Any]) -> list[Any]:
        cursor = connection.cursor()
        # The caller's rows may be dictionaries; ours are tuples.
        cursor.row_factory = None
        return cursor.execute(sql, values).fetchall()

    return run


def _psycopg_runner(connection: Any, dialect: str) -> Run:
    from psycopg import Cursor
    from psycopg.rows import tuple_row

    check_dialect(dialect, "postgres")
    check_open(is_open=connection.info.transaction_status != 0 or not connection.autocommit)

    def run(sql: str, values: dict[str, Any]) -> list[Any]:
        # The connection's own cursors may have other placeholders and other rows.
        with Cursor(connection, row_factory=tuple_row) as cursor:
            cursor.execute(sql, values)
            return cursor.fetchall() if cursor.description else []

    return run


def sqlalchemy_runner(transaction: Any, dialect: str) -> Run:
    connection = transaction.connection() if hasattr(transaction, "flush") else transaction
    check_dialect(dialect, {"postgresql": "postgres"}.get(connection.dialect.name, "sqlite"))
    driver = connection.connection
    if dialect == "postgres":
        check_open(is_open=not getattr(driver.dbapi_connection, "autocommit", False))
    elif not check_sqlite(driver.driver_connection):
        connection.exec_driver_sql(BEGIN_SQLITE)

    def run(sql: str, values: dict[str, Any]) -> list[Any]:
        result = connection.execute(_text_of(sql), values)
        return list(result.fetchall()) if result.returns_rows else []

    return run


@cache
def _text_of(sql: str) -> Any:
    """SQLAlchemy knows its driver's placeholders; it is given its own."""
    from sqlalchemy import text

    return text(_PLACEHOLDER.sub(r":\1", sql))


def _django_runner(connection: Any, dialect: str) -> Run:
    check_dialect(dialect, "sqlite" if connection.vendor == "sqlite" else "postgres")
    check_open(is_open=connection.in_atomic_block)
    if dialect == "sqlite":
        # Django rewrites placeholders for SQLite; the connection below it takes ours as they are.
        return _sqlite_runner(connection.connection, dialect)

    def run(sql: str, values: dict[str, Any]) -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute(sql, values)
            return list(cursor.fetchall()) if cursor.description else []

    return run
