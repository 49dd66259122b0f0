"""Fills a store in bulk: its own tables, their indexes set aside and built again at the end."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

import oncekey
from bench.console.rows import OWNER, Day, Table

Sqlite = sqlite3.Connection
Postgres = psycopg.Connection[Any]

_FLOOR = "UPDATE oncekey_owners SET floor = ? WHERE id = ?"
_INDEXES = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
_PG_INDEXES = """
SELECT indexname, indexdef FROM pg_indexes
WHERE schemaname = 'public' AND tablename LIKE 'oncekey%'
    AND indexname NOT IN (SELECT conname FROM pg_constraint)
"""


def fill(url: str, day: Day) -> None:
    oncekey.open(url).close()
    floor = (day.floor, OWNER)
    with opened(url) as database:
        if isinstance(database, sqlite3.Connection):
            database.execute(_FLOOR, floor)
        else:
            database.execute(_FLOOR.replace("?", "%s"), floor)
        fill_tables(database, day.tables())


def fill_tables(database: Sqlite | Postgres, tables: Iterable[Table]) -> None:
    for table in tables:
        if isinstance(database, sqlite3.Connection):
            _insert(database, table)
        else:
            _copy(database, table)


@contextmanager
def opened(url: str) -> Iterator[Sqlite | Postgres]:
    """The tables without their indexes; leaving builds these from their own definitions."""
    if url.startswith("sqlite"):
        with _opened_sqlite(url.removeprefix("sqlite:///")) as file:
            yield file
    else:
        with _opened_postgres(url) as database:
            yield database


@contextmanager
def _opened_sqlite(path: str) -> Iterator[Sqlite]:
    file = sqlite3.connect(path, isolation_level=None)
    file.execute("PRAGMA journal_mode = OFF")
    file.execute("PRAGMA synchronous = OFF")
    indexes = file.execute(_INDEXES).fetchall()
    for name, _ in indexes:
        file.execute(f"DROP INDEX {name}")
    file.execute("BEGIN")
    yield file
    file.execute("COMMIT")
    for _, definition in indexes:
        file.execute(definition)
    file.execute("PRAGMA journal_mode = WAL")
    file.close()


@contextmanager
def _opened_postgres(url: str) -> Iterator[Postgres]:
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("SET synchronous_commit = off")
        database.execute("SET maintenance_work_mem = '512MB'")
        indexes = database.execute(_PG_INDEXES).fetchall()
        for name, _ in indexes:
            database.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
        yield database
        for _, definition in indexes:
            database.execute(definition)
        database.execute("VACUUM ANALYZE")


def _insert(file: Sqlite, table: Table) -> None:
    columns, marks = ", ".join(table.columns), ", ".join("?" * len(table.columns))
    file.executemany(f"INSERT INTO {table.name} ({columns}) VALUES ({marks})", table.rows)


def _copy(database: Postgres, table: Table) -> None:
    with database.cursor() as cursor, cursor.copy(copy_into(table.name, table.columns)) as copy:
        for row in table.rows:
            copy.write_row(row)


def copy_into(name: str, columns: Iterable[str]) -> sql.Composed:
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    return sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(name), names)
