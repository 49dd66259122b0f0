"""The tables' version: made when missing, brought up to date, refused when newer than this code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oncekey.core.errors import SchemaOutdated, SchemaTooNew
from oncekey.stores.queries import load, migrations, newest

Execute = Callable[[str, dict[str, Any]], list[Any]]
Script = Callable[[str], None]


def version_of(dialect: str, execute: Execute) -> int:
    """The version of the tables; 0 when there are none."""
    queries = load(dialect)
    if not execute(queries["has_version_table"], {}):
        return 0
    rows = execute(queries["version"], {})
    return (rows[0][0] or 0) if rows else 0


def migrate(dialect: str, execute: Execute, script: Script) -> list[int]:
    """Run what is missing, inside the caller's transaction. Answers the versions that were run."""
    queries = load(dialect)
    current = version_of(dialect, execute)
    check_not_newer(dialect, current)
    missing = [(version, sql) for version, sql in migrations(dialect) if version > current]
    if missing:
        execute(queries["make_version_table"], {})
    for version, sql in missing:
        script(sql)
        execute(queries["set_version"], {"version": version})
    return [version for version, _ in missing]


def check(dialect: str, current: int) -> None:
    """Refuse to work on tables of another version."""
    check_not_newer(dialect, current)
    if current < newest(dialect):
        raise SchemaOutdated(
            f"the tables are at version {current}, this code needs {newest(dialect)}; "
            "run `oncekey migrate`"
        )


def check_not_newer(dialect: str, current: int) -> None:
    if current > newest(dialect):
        raise SchemaTooNew(
            f"the tables are at version {current}, this code knows {newest(dialect)}; "
            "upgrade oncekey in this process"
        )
