"""How to run SQL on a caller's async connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from oncekey.stores.within.blocking import runner_of, sqlalchemy_runner
from oncekey.stores.within.families import check_dialect, check_open, family_of, is_async

ARun = Callable[[str, dict[str, Any]], Awaitable[list[Any]]]


def arunner_of(transaction: Any, dialect: str) -> ARun:
    family = family_of(transaction)
    if not is_async(transaction):
        return _blocking_runner(transaction, dialect)
    if family == "psycopg":
        return _psycopg_runner(transaction, dialect)
    return _sqlalchemy_runner(transaction, dialect)


def _blocking_runner(transaction: Any, dialect: str) -> ARun:
    """A blocking connection in async code: its owner has chosen to block the loop."""
    blocking = runner_of(transaction, dialect)

    async def run(sql: str, values: dict[str, Any]) -> list[Any]:
        return blocking(sql, values)

    return run


def _psycopg_runner(connection: Any, dialect: str) -> ARun:
    from psycopg import AsyncCursor
    from psycopg.rows import tuple_row

    check_dialect(dialect, "postgres")
    check_open(is_open=connection.info.transaction_status != 0 or not connection.autocommit)

    async def run(sql: str, values: dict[str, Any]) -> list[Any]:
        async with AsyncCursor(connection, row_factory=tuple_row) as cursor:
            await cursor.execute(sql, values)
            return await cursor.fetchall() if cursor.description else []

    return run


def _sqlalchemy_runner(transaction: Any, dialect: str) -> ARun:
    async def run(sql: str, values: dict[str, Any]) -> list[Any]:
        def work(inner: Any) -> list[Any]:
            return sqlalchemy_runner(inner, dialect)(sql, values)

        rows: list[Any] = await transaction.run_sync(work)
        return rows

    return run
