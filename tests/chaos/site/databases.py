"""Where the ledger is: a file, a PostgreSQL, or a Restate; each on a disk that can be filled."""

import asyncio
import json
import sqlite3
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Protocol

import httpx
import psycopg

from tests.chaos.history import Event, read
from tests.chaos.site.disk import Disk
from tests.chaos.site.line import Line
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.restate_server import RestateServer, new_space

TABLE = "CREATE TABLE chaos_effects (line TEXT)"


class Database(Protocol):
    """`lines` lead to it, so many for each server; `restart` goes through a crash."""

    disk: Disk
    restarts: bool
    has_transactions: bool
    deaths_show: bool
    """Whether a claim lapses as soon as its process is dead, and not with the lease."""

    async def open(self, servers: int) -> None: ...

    def url(self, server: int) -> str: ...

    def lines(self, server: int) -> list[Line]: ...

    def restart(self) -> None: ...

    def effects(self, folder: Path) -> list[Event]:
        """What was done within its own transactions."""
        ...

    def dump(self, folder: Path) -> None:
        """What it knows of work that is not done, for whoever looks for the reason."""
        ...

    async def close(self) -> None: ...


class Sqlite:
    restarts = False
    has_transactions = True
    deaths_show = True

    def __init__(self, folder: Path) -> None:
        self.disk = Disk(folder, megabytes=256)
        self._file = self.disk.path / "oncekey.db"

    async def open(self, servers: int) -> None:
        with closing(sqlite3.connect(self._file)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(TABLE)

    def url(self, server: int) -> str:
        return f"sqlite:///{self._file}"

    def lines(self, server: int) -> list[Line]:
        return []

    def restart(self) -> None:
        raise NotImplementedError

    def effects(self, folder: Path) -> list[Event]:
        with closing(sqlite3.connect(self._file)) as connection:
            rows = connection.execute("SELECT line FROM chaos_effects").fetchall()
        return _events_of(folder, [line for (line,) in rows])

    def dump(self, folder: Path) -> None:
        """What happened tells it all."""

    async def close(self) -> None:
        self.disk.close()


class Postgres:
    restarts = True
    has_transactions = True
    deaths_show = False

    def __init__(self, folder: Path) -> None:
        self.disk = Disk(folder, megabytes=1024)
        self._server: PostgresServer | None = None
        self._lines: list[Line] = []

    async def open(self, servers: int) -> None:
        self._server = await asyncio.to_thread(PostgresServer, self.disk.path)
        await asyncio.to_thread(self._server.start)
        self._database = await asyncio.to_thread(self._server.create_database)
        with psycopg.connect(self._server.url(self._database), autocommit=True) as connection:
            connection.execute(TABLE)
        self._lines = [Line(self._server.port) for _ in range(servers)]
        for line in self._lines:
            await line.open()

    def url(self, server: int) -> str:
        port = self._lines[server].port
        return f"postgresql://postgres@127.0.0.1:{port}/{self._database}"

    def lines(self, server: int) -> list[Line]:
        return [self._lines[server]]

    def restart(self) -> None:
        self._server.restart()

    def effects(self, folder: Path) -> list[Event]:
        with psycopg.connect(self._server.url(self._database)) as connection:
            rows = connection.execute("SELECT line FROM chaos_effects").fetchall()
        return _events_of(folder, [line for (line,) in rows])

    def dump(self, folder: Path) -> None:
        """What happened tells it all."""

    async def close(self) -> None:
        for line in self._lines:
            await line.close()
        await asyncio.to_thread(self._server.close)
        self.disk.close()


class Restate:
    restarts = True
    has_transactions = False
    deaths_show = False

    def __init__(self, folder: Path) -> None:
        self.disk = Disk(folder, megabytes=4096)

    async def open(self, servers: int) -> None:
        self._server = await asyncio.to_thread(RestateServer, self.disk.path)
        await asyncio.to_thread(self._server.start)
        self._space = new_space()
        addresses = self._server.nodes[0].addresses
        ports = [int(addresses[part].rpartition(":")[2]) for part in ("ingress", "admin")]
        self._lines = [[Line(port) for port in ports] for _ in range(servers)]
        for line in chain(*self._lines):
            await line.open()

    def url(self, server: int) -> str:
        ingress, admin = (f"127.0.0.1:{line.port}" for line in self._lines[server])
        return f"restate://{ingress}?admin={admin}&endpoint=http://127.0.0.1:0&space={self._space}"

    def lines(self, server: int) -> list[Line]:
        return self._lines[server]

    def restart(self) -> None:
        self._server.restart()

    def effects(self, folder: Path) -> list[Event]:
        return []

    def dump(self, folder: Path) -> None:
        with (folder / "restate.jsonl").open("w") as file:
            for query in _LEFT:
                told = httpx.post(
                    f"{self._server.admin}/query",
                    json={"query": query},
                    headers={"accept": "application/json"},
                    timeout=60,
                )
                file.writelines(f"{json.dumps(row)}\n" for row in told.json()["rows"])

    async def close(self) -> None:
        for line in chain(*self._lines):
            await line.close()
        await asyncio.to_thread(self._server.close)
        self.disk.close()


_LEFT = (
    "SELECT * FROM sys_invocation WHERE status <> 'completed'",
    "SELECT * FROM sys_deployment",
    "SELECT * FROM sys_service",
    "SELECT service_key, key, value_utf8 FROM state WHERE service_name = 'oncekey.Execution'",
)
DATABASES = {"sqlite": Sqlite, "postgres": Postgres, "restate": Restate}


def _events_of(folder: Path, lines: list[str]) -> list[Event]:
    file = folder / "within.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines))
    return read(file)
