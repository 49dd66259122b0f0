"""The store that is measured: where it is, how large it is, and what in it is past its time."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import psycopg

SQLITE, POSTGRES = "sqlite", "postgres"
STORES = (SQLITE, POSTGRES)
_OLDEST = "SELECT min(expires_at) FROM oncekey_outcomes"
_TABLES = (
    "oncekey_claims",
    "oncekey_outcomes",
    "oncekey_promises",
    "oncekey_executions",
    "oncekey_deliveries",
    "oncekey_owners",
)


class Place(NamedTuple):
    store: str
    url: str

    @property
    def path(self) -> Path:
        """Of the file, on SQLite."""
        return Path(self.url.removeprefix("sqlite:///"))

    def sizes(self) -> dict[str, float]:
        """Bytes on disk: `data` holds the rows, `free` is that part of it which new rows go into
        first (what PostgreSQL has to give it does not tell), `log` is what precedes it."""
        if self.store == POSTGRES:
            with psycopg.connect(self.url, autocommit=True) as database:
                found = database.execute(
                    "SELECT pg_database_size(current_database()),"
                    " (SELECT coalesce(sum(size), 0)::BIGINT FROM pg_ls_waldir())"
                ).fetchone()
                assert found is not None
                return {"data": found[0], "free": 0, "log": found[1]}
        log = self.path.with_name(f"{self.path.name}-wal")
        with closing(self._read()) as file:
            free = file.execute("PRAGMA freelist_count").fetchone()[0]
            page = file.execute("PRAGMA page_size").fetchone()[0]
        return {
            "data": self.path.stat().st_size,
            "free": free * page,
            "log": log.stat().st_size if log.exists() else 0,
        }

    def lag(self, now: int) -> float:
        """Seconds by which the oldest outcome has outlived its retention."""
        oldest = self._one(_OLDEST)
        return 0.0 if oldest is None else max(0.0, (now - oldest) / 1000)

    def rows(self) -> dict[str, int]:
        return {name: self._one(f"SELECT count(*) FROM {name}") or 0 for name in _TABLES}

    def vacuum(self) -> None:
        """What autovacuum does by itself, now: PostgreSQL finds the room that was swept."""
        if self.store == POSTGRES:
            with psycopg.connect(self.url, autocommit=True) as database:
                database.execute("VACUUM ANALYZE")

    def _one(self, query: str) -> int | None:
        if self.store == POSTGRES:
            with psycopg.connect(self.url, autocommit=True) as database:
                found = database.execute(query.encode()).fetchone()
        else:
            with closing(self._read()) as file:
                found = file.execute(query).fetchone()
        assert found is not None
        return found[0]

    def _read(self) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=10)
