"""What a caller may give us as its transaction, known by module, so that nothing is imported."""

from __future__ import annotations

import sqlite3
from typing import Any, Literal

from oncekey.core.errors import ConfigurationError

Family = Literal["sqlite3", "psycopg", "sqlalchemy", "django"]
_LIBRARIES: tuple[Family, ...] = ("psycopg", "sqlalchemy", "django")


def family_of(transaction: Any) -> Family:
    if isinstance(transaction, sqlite3.Connection):
        return "sqlite3"
    modules = {kind.__module__.partition(".")[0] for kind in type(transaction).__mro__}
    for family in _LIBRARIES:
        if family in modules:
            return family
    raise ConfigurationError(
        f"a transaction is a sqlite3 or psycopg connection, a SQLAlchemy session or connection, "
        f"or a Django connection, not {type(transaction).__name__}"
    )


def is_async(transaction: Any) -> bool:
    return "Async" in type(transaction).__name__ or hasattr(transaction, "run_sync")


def check_dialect(ledger: str, connection: str) -> None:
    if ledger != connection:
        raise ConfigurationError(
            f"the ledger is on {ledger} and the transaction on {connection}: both must be on the "
            "same database to commit together"
        )


def check_open(*, is_open: bool) -> None:
    if not is_open:
        raise ConfigurationError(
            "the connection commits every statement by itself; begin a transaction first"
        )


def check_sqlite(connection: Any) -> bool:
    """Whether a transaction is open on a sqlite3 connection, or on one of the same make.

    With `isolation_level` None, or `autocommit` of newer Pythons, each statement commits by itself
    unless BEGIN was said. Otherwise one is open, or is begun by the first statement that writes.
    """
    commits = connection.isolation_level is None or getattr(connection, "autocommit", None) is True
    check_open(is_open=connection.in_transaction or not commits)
    return bool(connection.in_transaction)
