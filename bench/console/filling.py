"""Fills a store in bulk: its own tables, their indexes set aside and built again at the end."""

import sqlite3
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

import oncekey
from bench.console.rows import OWNER, Day, Table

_FLOOR = "UPDATE oncekey_owners SET floor = ? WHERE id = ?"
_INDEXES = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
_PG_INDEXES = """
SELECT indexname, indexdef FROM pg_indexes
WHERE schemaname = 'public' AND tablename LIKE 'oncekey%'
    AND indexname NOT IN (SELECT conname FROM pg_constraint)
"""


def fill(url: str, day: Day) -> None:
    oncekey.open(url).close()
    if url.startswith("sqlite"):
        _fill_sqlite(Path(url.removeprefix("sqlite:///")), day)
    else:
        _fill_postgres(url, day)


def _fill_sqlite(path: Path, day: Day) -> None:
    file = sqlite3.connect(path, isolation_level=None)
    file.execute("PRAGMA journal_mode = OFF")
    file.execute("PRAGMA synchronous = OFF")
    indexes = file.execute(_INDEXES).fetchall()
    for name, _ in indexes:
        file.execute(f"DROP INDEX {name}")
    file.execute("BEGIN")
    file.execute(_FLOOR, (day.floor, OWNER))
    for table in day.tables():
        columns, marks = ", ".join(table.columns), ", ".join("?" * len(table.columns))
        statement = f"INSERT INTO {table.name} ({columns}) VALUES ({marks})"
        file.executemany(statement, table.rows)
    file.execute("COMMIT")
    for _, definition in indexes:
        file.execute(definition)
    file.execute("PRAGMA journal_mode = WAL")
    file.close()


def _fill_postgres(url: str, day: Day) -> None:
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("SET synchronous_commit = off")
        indexes = database.execute(_PG_INDEXES).fetchall()
        for name, _ in indexes:
            database.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
        database.execute(_FLOOR.replace("?", "%s"), (day.floor, OWNER))
        for table in day.tables():
            _copy(database, table)
        for _, definition in indexes:
            database.execute(definition)
        database.execute("VACUUM ANALYZE")


def _copy(database: psycopg.Connection[Any], table: Table) -> None:
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table.name), sql.SQL(", ").join(map(sql.Identifier, table.columns))
    )
    with database.cursor() as cursor, cursor.copy(statement) as copy:
        for row in table.rows:
            copy.write_row(row)
