"""The SQLite store: sessions for the writer, an administrative connection, and lives by lock and beat."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from oncekey.core.clock import Clock
from oncekey.core.errors import StoreUnavailable
from oncekey.core.ports import Answer, Beat, Found, Query, Request, Waiter
from oncekey.stores import schema
from oncekey.stores.administration import Administration
from oncekey.stores.fork import reset_after_fork
from oncekey.stores.queries import load
from oncekey.stores.requests import Setting
from oncekey.stores.rows import OWNER_BOOT, OWNER_HEARTBEAT, OWNER_NAME
from oncekey.stores.sqlite.connection import connect, is_unavailable, script_of
from oncekey.stores.sqlite.locks import Locks
from oncekey.stores.sqlite.session import SqliteSession
from oncekey.stores.within import ask, aask
from oncekey.stores.writer import Writer

QUERIES = load("sqlite")
# The ledger's floor does not know of claims that are still on their way; this is how old they may be.
_FLOOR_MARGIN = 15_000 << 21


class SqliteStore:
    """`lease` is how many seconds a silent process keeps its claims."""

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        lease: float = 15.0,
        heartbeat: float = 5.0,
        migrate: bool = True,
    ) -> None:
        self.path = path.absolute()
        self._clock = clock
        self._lease = int(lease * 1000)
        self._heartbeat = heartbeat
        self._migrate = migrate
        self._boot = boot_id()
        self._starting = threading.Lock()
        self._writer: Writer | None = None
        self._closed = False

    def open(self, beat: Beat) -> None:
        self._beat = beat
        reset_after_fork(self, _forget_parent)
        self._start()

    def submit(self, request: Request, waiter: Waiter) -> None:
        (self._writer or self._start()).submit(request, waiter)

    def ask_within(self, transaction: Any, request: Request) -> Answer:
        return ask(transaction, request, self.setting(), "sqlite")

    async def aask_within(self, transaction: Any, request: Request) -> Answer:
        return await aask(transaction, request, self.setting(), "sqlite")

    def purge_epoch(self) -> int | None:
        return self._locks.epoch()

    # -- administration, on a connection of its own ---------------------------------------

    @cached_property
    def _administration(self) -> Administration:
        return Administration(QUERIES, self.execute_in_transaction, self.setting, self._bury)

    def list(self, query: Query, now: int) -> list[Found]:
        return self._administration.list(query, now)

    def sweep(self, now: int, batch: int) -> int:
        return self._administration.sweep(now, batch)

    def count_expired(self, now: int) -> int:
        return self._administration.count_expired(now)

    def sweep_due(self, now: int, interval: int) -> bool:
        return self._administration.sweep_due(now, interval)

    def retention(self) -> dict[str, float]:
        return self._administration.retention()

    def set_retention(self, name: str, seconds: float) -> None:
        self._administration.set_retention(name, seconds)

    def close(self) -> None:
        if self._closed or self._writer is None:
            return
        self._closed = True
        self._writer.close()
        self._locks.close()

    # -- lives ---------------------------------------------------------------------------

    def setting(self) -> Setting:
        return Setting(self.owner, self._is_gone)

    def _is_gone(self, row: Sequence[Any]) -> bool:
        name = row[OWNER_NAME]
        if name is None or row[OWNER_BOOT] != self._boot:
            return True
        silent = self._clock.steady() - row[OWNER_HEARTBEAT]
        return silent > self._lease or self._locks.is_dead(name)

    def register(self, connection: sqlite3.Connection) -> int:
        """A row for this process and boot; its number stands in every claim."""
        values = {
            "name": self._locks.name,
            "boot": self._boot,
            "steady": self._clock.steady(),
            "now": self._clock.now(),
            "floor": self._floor(connection),
        }
        self.owner = int(connection.execute(QUERIES["register"], values).fetchone()[0])
        return self.owner

    def beat(self, connection: sqlite3.Connection) -> None:
        values = {
            "owner": self.owner,
            "steady": self._clock.steady(),
            "floor": self._floor(connection),
        }
        with self._locks.gate():
            if not connection.execute(QUERIES["beat"], values).fetchall():
                # Silent for so long that others have buried us: start a new life.
                self._locks.rename()
                self.register(connection)

    def retire(self, connection: sqlite3.Connection) -> None:
        with self._locks.gate():
            connection.execute(QUERIES["retire"], {"owner": self.owner})

    def _floor(self, connection: sqlite3.Connection) -> int:
        classes = dict(connection.execute(QUERIES["retention"]).fetchall())
        return max(0, self._beat(classes) - _FLOOR_MARGIN)

    def _bury(self, name: str) -> None:
        self._locks.bury(name)

    # -- starting ------------------------------------------------------------------------

    def _start(self) -> Writer:
        with self._starting:
            if self._writer is not None:
                return self._writer
            self._locks = Locks(self.path)
            with self._locks.gate():
                self._locks.heal()
                connection = connect(self.path)
                self._prepare(connection)
                self.register(connection)
            connection.close()
            writer = Writer(self._session, heartbeat=self._heartbeat)
            writer.start()
            self._writer = writer
            return writer

    def _prepare(self, connection: sqlite3.Connection) -> None:
        def execute(sql: str, values: dict[str, Any]) -> list[Any]:
            return connection.execute(sql, values).fetchall()

        connection.execute("BEGIN IMMEDIATE")
        try:
            if self._migrate:
                schema.migrate("sqlite", execute, script_of(connection))
            schema.check("sqlite", schema.version_of("sqlite", execute))
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    def _session(self) -> SqliteSession:
        return SqliteSession(self, connect(self.path), self._locks)

    def execute_in_transaction(
        self, work: Callable[[Callable[[str, dict[str, Any]], list[Any]]], Any], *, write: bool
    ) -> Any:
        """Run `work` on a connection that does not sync: what it deletes may come back, expired."""
        connection = connect(self.path, synchronous="NORMAL")
        try:
            if not write:
                return work(lambda sql, values: connection.execute(sql, values).fetchall())
            with self._locks.gate():
                connection.execute("BEGIN IMMEDIATE")
                result = work(lambda sql, values: connection.execute(sql, values).fetchall())
                connection.execute("COMMIT")
                return result
        except sqlite3.Error as error:
            if is_unavailable(error):
                raise StoreUnavailable(f"SQLite: {error}") from error
            raise
        finally:
            connection.close()


def _forget_parent(store: SqliteStore) -> None:
    """A forked child is another process: it must not touch its parent's connection, and lives anew."""
    store._starting = threading.Lock()
    store._writer = None
    store.__dict__.pop("_administration", None)


def boot_id() -> str:
    """Names this boot of the machine: steady time starts again with the next."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return f"uid-{os.getuid()}"
