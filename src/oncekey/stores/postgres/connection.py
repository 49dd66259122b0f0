"""Connections to PostgreSQL, each set up the same way. The password stays out of every message."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from oncekey.core.errors import ConfigurationError, SchemaOutdated, StoreError, StoreUnavailable
from oncekey.stores.queries import load

QUERIES = load("postgres")
Connection = psycopg.Connection[TupleRow]

_OLDEST = 140_000
# A server that is away is noticed within seconds, also when a lost network says nothing.
_DEFAULTS = {
    "application_name": "oncekey",
    "connect_timeout": "3",
    "keepalives_idle": "10",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
_STATEMENT_TIMEOUT = 10_000
_LOCK_TIMEOUT = 1_000
# Limits of the server that a single request may be over: trying again would not help.
_TOO_MUCH = "54"
_MISSING = (errors.UndefinedTable, errors.UndefinedFunction, errors.UndefinedColumn)
_UNWRITABLE = (errors.ReadOnlySqlTransaction, errors.InsufficientPrivilege)


class Database:
    """Where the tables are, and how to get there."""

    def __init__(self, url: str) -> None:
        self._secrets = _secrets_in(url)
        try:
            given = {name: str(value) for name, value in conninfo_to_dict(url).items()}
        except psycopg.ProgrammingError as error:
            message = self._without_secrets(error)
            raise ConfigurationError(f"the PostgreSQL URL cannot be read: {message}") from None
        if given.get("password"):
            self._secrets.add(given["password"])
        self._parameters: dict[str, Any] = {**_DEFAULTS, **given}

    def connect(
        self, *, statement_timeout: int = _STATEMENT_TIMEOUT, lock_timeout: int = _LOCK_TIMEOUT
    ) -> Connection:
        """A connection that commits every statement by itself. Time-outs are in milliseconds."""
        try:
            connection = psycopg.connect(autocommit=True, **self._parameters)
        except psycopg.Error as error:
            message = self._without_secrets(error)
            raise StoreUnavailable(f"PostgreSQL cannot be reached: {message}") from None
        try:
            _check_version(connection)
            values = {
                "statement_timeout": str(statement_timeout),
                "lock_timeout": str(lock_timeout),
            }
            connection.execute(QUERIES["session"], values)
        except psycopg.Error as error:
            connection.close()
            raise failure_of(error) or error from None
        except BaseException:
            connection.close()
            raise
        return connection

    def __repr__(self) -> str:
        shown = {name: self._parameters.get(name, "") for name in ("host", "port", "dbname")}
        return f"{shown['host']}:{shown['port']}/{shown['dbname']}"

    def _without_secrets(self, error: Exception) -> str:
        message = " ".join(str(error).split())
        for secret in sorted(self._secrets, key=len, reverse=True):
            message = message.replace(secret, "***")
        return message


def failure_of(error: psycopg.Error) -> StoreError | None:
    """What the store's own trouble is called; None when the request is at fault."""
    message = str(error).partition("\n")[0]
    if isinstance(error, _MISSING):
        return SchemaOutdated(f"PostgreSQL: {message}; run `oncekey migrate`")
    if (error.sqlstate or "").startswith(_TOO_MUCH):
        return None
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError, *_UNWRITABLE)):
        return StoreUnavailable(f"PostgreSQL: {message}")
    return None


def _check_version(connection: Connection) -> None:
    version = connection.info.server_version
    if version < _OLDEST:
        raise ConfigurationError(
            f"PostgreSQL {_OLDEST // 10_000} or newer is needed, not {version // 10_000}"
        )


def _secrets_in(url: str) -> set[str]:
    """Everything that may be a piece of the password, also in a URL that is not well formed."""
    userinfo, at, _ = url.partition("://")[2].rpartition("@")
    password = userinfo.partition(":")[2]
    pieces = {password, *password.replace("/", "@").replace("?", "@").split("@")} if at else set()
    return {piece for piece in pieces if piece}
