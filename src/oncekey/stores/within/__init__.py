"""The caller's own transaction: claim and outcome go through its connection, so that effect and
outcome commit together or not at all. One set of steps, whatever the connection is."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any

from oncekey.core.errors import ConfigurationError
from oncekey.core.model import Record
from oncekey.core.ports import Answer, Found, Insert, Replace, Request
from oncekey.stores.queries import load
from oncekey.stores.requests import Setting, Steps, carry_out

Run = Callable[[str, dict[str, Any]], list[Any]]
ARun = Callable[[str, dict[str, Any]], Awaitable[list[Any]]]


def ask(transaction: Any, request: Request, setting: Setting, dialect: str) -> Answer:
    run = _runner_of(transaction, dialect)
    queries, steps = load(dialect), _steps_of(request, setting)
    try:
        name, values = next(steps)
        while True:
            name, values = steps.send(run(queries[name], values))
    except StopIteration as stop:
        answer: Answer = stop.value
        return answer


async def aask(transaction: Any, request: Request, setting: Setting, dialect: str) -> Answer:
    run = _arunner_of(transaction, dialect)
    queries, steps = load(dialect), _steps_of(request, setting)
    try:
        name, values = next(steps)
        while True:
            name, values = steps.send(await run(queries[name], values))
    except StopIteration as stop:
        answer: Answer = stop.value
        return answer


def _steps_of(request: Request, setting: Setting) -> Steps:
    insert = request.insert if isinstance(request, Replace) else request
    if isinstance(insert, Insert):
        return _claim(request, insert, setting)
    return carry_out(request, setting)


def _claim(request: Request, insert: Insert, setting: Setting) -> Steps:
    """Another transaction that holds this key is not visible yet; its lock is."""
    rows = yield "try_key_lock", {"digest": insert.digest}
    if rows and rows[0][0]:
        return (yield from carry_out(request, setting))
    operation = insert.operation
    held = Record(
        insert.id,
        operation.ref,
        operation.fingerprint,
        setting.owner,
        1,
        operation.request_id,
        operation.retention,
        insert.created_at,
        insert.expires_at,
    )
    return Found(held, lapsed=False)


def _runner_of(transaction: Any, dialect: str) -> Run:
    """How to run SQL on what the caller gave us. Known by its module, so that nothing is imported."""
    if isinstance(transaction, sqlite3.Connection):
        return _sqlite_runner(transaction, dialect)
    match _family_of(transaction):
        case "psycopg":
            return _psycopg_runner(transaction, dialect)
        case "sqlalchemy":
            return _sqlalchemy_runner(transaction, dialect)
        case "django":
            return _django_runner(transaction, dialect)
    raise ConfigurationError(
        f"a transaction is a sqlite3 or psycopg connection, a SQLAlchemy session or connection, "
        f"or a Django connection, not {type(transaction).__name__}"
    )


def _arunner_of(transaction: Any, dialect: str) -> ARun:
    name = type(transaction).__name__
    if _family_of(transaction) == "psycopg" and name.startswith("Async"):
        _check_dialect(dialect, "postgres")
        _check_open(transaction.info.transaction_status != 0 or not transaction.autocommit)

        async def run(sql: str, values: dict[str, Any]) -> list[Any]:
            cursor = await transaction.execute(sql, values)
            return await cursor.fetchall() if cursor.description else []

        return run
    if _family_of(transaction) == "sqlalchemy" and hasattr(transaction, "run_sync"):

        async def run_inside(sql: str, values: dict[str, Any]) -> list[Any]:
            def work(inner: Any) -> list[Any]:
                return _sqlalchemy_runner(inner, dialect)(sql, values)

            rows: list[Any] = await transaction.run_sync(work)
            return rows

        return run_inside
    blocking = _runner_of(transaction, dialect)

    async def run_blocking(sql: str, values: dict[str, Any]) -> list[Any]:
        return blocking(sql, values)

    return run_blocking


def _sqlite_runner(connection: sqlite3.Connection, dialect: str) -> Run:
    _check_dialect(dialect, "sqlite")
    # With isolation_level None every statement commits by itself unless BEGIN was said.
    _check_open(connection.in_transaction or connection.isolation_level is not None)
    return lambda sql, values: connection.execute(sql, values).fetchall()


def _psycopg_runner(connection: Any, dialect: str) -> Run:
    _check_dialect(dialect, "postgres")
    _check_open(connection.info.transaction_status != 0 or not connection.autocommit)

    def run(sql: str, values: dict[str, Any]) -> list[Any]:
        cursor = connection.execute(sql, values)
        return cursor.fetchall() if cursor.description else []

    return run


def _sqlalchemy_runner(transaction: Any, dialect: str) -> Run:
    connection = transaction.connection() if hasattr(transaction, "flush") else transaction
    _check_dialect(dialect, {"sqlite": "sqlite"}.get(connection.dialect.name, "postgres"))

    def run(sql: str, values: dict[str, Any]) -> list[Any]:
        result = connection.exec_driver_sql(sql, values)
        return list(result.fetchall()) if result.returns_rows else []

    return run


def _django_runner(connection: Any, dialect: str) -> Run:
    _check_dialect(dialect, "sqlite" if connection.vendor == "sqlite" else "postgres")
    _check_open(connection.in_atomic_block)
    connection.ensure_connection()
    if dialect == "sqlite":
        # Django rewrites placeholders for SQLite; the connection below it takes ours as they are.
        raw = connection.connection
        return lambda sql, values: sqlite3.Connection.execute(raw, sql, values).fetchall()

    def run(sql: str, values: dict[str, Any]) -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute(sql, values)
            return list(cursor.fetchall()) if cursor.description else []

    return run


def _family_of(transaction: Any) -> str:
    for kind in type(transaction).__mro__:
        family = kind.__module__.partition(".")[0]
        if family in {"psycopg", "sqlalchemy", "django"}:
            return family
    return ""


def _check_dialect(ledger: str, connection: str) -> None:
    if ledger != connection:
        raise ConfigurationError(
            f"the ledger is on {ledger} and the transaction on {connection}: both must be on the "
            "same database to commit together"
        )


def _check_open(is_open: bool) -> None:
    if not is_open:
        raise ConfigurationError(
            "the connection commits every statement by itself; begin a transaction first"
        )
