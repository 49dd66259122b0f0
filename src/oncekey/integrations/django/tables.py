"""The store's own migrations as operations of Django's: one source of truth for the tables."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from typing import Any

from django.db.migrations.operations.base import Operation

from oncekey.integrations.django.database import DIALECTS, dialect_of
from oncekey.integrations.django.preferences import preferences
from oncekey.stores import schema
from oncekey.stores.queries import load, migrations

_MADE = re.compile(
    r"^CREATE\s+(?:OR\s+REPLACE\s+|UNIQUE\s+)?(TABLE|INDEX|VIEW|FUNCTION|TYPE|SEQUENCE)\s+"
    r"(?:IF\s+NOT\s+EXISTS\s+)?(\w+)",
    re.MULTILINE | re.IGNORECASE,
)
_ADDED = re.compile(r"^ALTER\s+TABLE\s+(\w+)\s+ADD\s+COLUMN\s+(\w+)", re.MULTILINE | re.IGNORECASE)


_FORGET_VERSION = "DELETE FROM oncekey_schema WHERE version >= :version"


class MigrateLedger(Operation):
    """Bring the store's tables to `version`; backwards, to the one before it."""

    reduces_to_sql = True
    reversible = True

    def __init__(self, version: int) -> None:
        self.version = version

    def describe(self) -> str:
        return f"Bring the tables of the OnceKey ledger to version {self.version}"

    @property
    def migration_name_fragment(self) -> str:
        return f"ledger_{self.version}"

    def state_forwards(self, app_label: str, state: Any) -> None:
        """The models are told apart, by state operations."""

    def database_forwards(self, app_label: str, editor: Any, old: Any, new: Any) -> None:
        if _is_foreign(editor.connection):
            return
        dialect = dialect_of(editor.connection)
        before = self.version - 1
        current = before if editor.collect_sql else _version_of(editor.connection, dialect)
        schema.check_not_newer(dialect, current)
        queries = load(dialect)
        if not current:
            editor.execute(queries["make_version_table"], params=None)
        for version, script in migrations(dialect):
            if current < version <= self.version:
                for statement in _statements_of(script, dialect):
                    editor.execute(statement, params=None)
                editor.execute(_with(queries["set_version"], version), params=None)

    def database_backwards(self, app_label: str, editor: Any, old: Any, new: Any) -> None:
        if _is_foreign(editor.connection):
            return
        dialect = dialect_of(editor.connection)
        script = dict(migrations(dialect))[self.version]
        for table, column in reversed(_ADDED.findall(script)):
            editor.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        for kind, name in reversed(_MADE.findall(script)):
            editor.execute(f"DROP {kind} IF EXISTS {name}")
        if self.version == 1:
            editor.execute("DROP TABLE IF EXISTS oncekey_schema")
        else:
            editor.execute(_with(_FORGET_VERSION, self.version), params=None)


def _with(sql: str, version: int) -> str:
    """Whole statements, so that `sqlmigrate` can show them."""
    return sql.replace(":version", str(version)).replace("%(version)s", str(version))


def version_of(connection: Any) -> int:
    """The version of the tables; 0 when there are none."""
    return _version_of(connection, dialect_of(connection))


def _version_of(connection: Any, dialect: str) -> int:
    def execute(sql: str, _: dict[str, Any]) -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    return schema.version_of(dialect, execute)


def _is_foreign(connection: Any) -> bool:
    """Other databases of the project may be of any kind, the one that holds the keys may not."""
    return connection.vendor not in DIALECTS and connection.alias != preferences().database


def _statements_of(script: str, dialect: str) -> Iterator[str]:
    """PostgreSQL takes a script whole, SQLite one statement at a time."""
    if dialect != "sqlite":
        yield script
        return
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement.strip()
            statement = ""
