"""The SQLite store: one file, one writer at a time, and lives seen by lock and heartbeat."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from oncekey.core.clock import Clock
from oncekey.core.errors import StoreUnavailable
from oncekey.stores import schema
from oncekey.stores.administration import Run
from oncekey.stores.desk import Desk
from oncekey.stores.private_file import make_private
from oncekey.stores.queries import load
from oncekey.stores.rows import OWNER_BOOT, OWNER_HEARTBEAT, OWNER_NAME
from oncekey.stores.sql import SqlStore
from oncekey.stores.sqlite.bell import SqliteBell
from oncekey.stores.sqlite.checkpoint import Checkpointer
from oncekey.stores.sqlite.connection import connect, is_unavailable, script_of
from oncekey.stores.sqlite.locks import Locks, folder_of
from oncekey.stores.sqlite.session import PREPARE, SqliteSession

QUERIES = load("sqlite")


class SqliteStore(SqlStore):
    dialect = "sqlite"
    alone = True
    locks: Locks

    def __init__(self, path: Path, clock: Clock, **options: Any) -> None:
        super().__init__(clock, **options)
        self.path = path.absolute()
        self._boot = boot_id()
        self._desk = Desk(lambda: connect(self.path))
        self.checkpointer = Checkpointer(self._checkpoint)

    def purge_epoch(self) -> int | None:
        return self.locks.epoch()

    def register(self, connection: sqlite3.Connection) -> None:
        """A row for this process and boot; its number stands in every claim."""
        self._has_beaten(self._clock.steady())
        values = {
            "name": self.locks.name,
            "boot": self._boot,
            "steady": self._beaten_at,
            "now": self._clock.now(),
            "floor": self._floor_by(connection),
        }
        self.owner = int(connection.execute(QUERIES["register"], values).fetchone()[0])

    def beat(self, connection: sqlite3.Connection) -> None:
        with self.locks.gate():
            self._beat_now(connection)
        self._desk.rest()

    def keep_alive(self, connection: sqlite3.Connection) -> None:
        """Inside the gate, around a claim: a process that stood still must not look dead there."""
        if self._clock.steady() - self._beaten_at > self.lease // 2:
            self._beat_now(connection)

    def transact(self, work: Callable[[Run], Any], *, write: bool, durable: bool = False) -> Any:
        try:
            with self._desk.borrow() as connection:
                run = _runner_of(connection)
                if not write:
                    return work(run)
                # What a sweep deletes may come back after a power cut: it is expired still.
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                with self.locks.gate():
                    connection.execute("BEGIN IMMEDIATE")
                    result = work(run)
                    connection.execute("COMMIT")
                    return result
        except sqlite3.Error as error:
            if is_unavailable(error):
                raise StoreUnavailable(f"SQLite: {error}") from error
            raise

    def pause(self) -> None:
        """SQLite remembers its file locks per process, and a child would inherit that memory
        without the locks: its writes could be lost. No connection may be open during a fork."""
        super().pause()
        if self._writer is not None:
            self._writer.pause()
        self._desk.pause()

    def resume(self) -> None:
        self._desk.resume()
        if self._writer is not None:
            self._writer.resume()
        super().resume()

    def forget_parent(self) -> None:
        if self._writer is not None and not self._closed:
            self.locks.forget()
        self._desk = Desk(lambda: connect(self.path))
        self.checkpointer = Checkpointer(self._checkpoint)
        super().forget_parent()

    def _beat_now(self, connection: sqlite3.Connection) -> None:
        steady = self._clock.steady()
        values = {"owner": self.owner, "steady": steady, "floor": self._floor_by(connection)}
        if connection.execute(QUERIES["beat"], values).fetchall():
            self._has_beaten(steady)
        else:
            # Silent for so long that others have buried us: start a new life.
            self.locks.rename()
            self.register(connection)

    # -- lives ---------------------------------------------------------------------------

    def _arrive(self) -> None:
        try:
            self._enter()
        except (OSError, sqlite3.Error) as error:
            # A folder or file that cannot be written to, or a lock that somebody keeps.
            raise StoreUnavailable(f"SQLite file {self.path}: {error}") from error

    def _enter(self) -> None:
        self.locks = Locks(self.path)
        with self.locks.gate():
            self.locks.heal()
            # The log and the rest beside it are made as it is. It has answers in it.
            make_private(self.path)
            connection = connect(self.path)
            try:
                self._prepare(connection)
                self.register(connection)
            finally:
                connection.close()

    def _checkpoint(self) -> None:
        with self._desk.borrow() as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _leave(self) -> None:
        self.checkpointer.close()
        with suppress(StoreUnavailable):
            self.transact(lambda run: run("retire", {"owner": self.owner}), write=True)
        self._desk.close()
        self.locks.close()

    def _is_gone(self, row: Sequence[Any]) -> bool:
        name = row[OWNER_NAME]
        if name is None or row[OWNER_BOOT] != self._boot:
            return True
        if self.locks.is_dead(name):
            return True
        now = self._clock.steady()
        return now - row[OWNER_HEARTBEAT] > self.lease and self._may_judge(now)

    def _new_bell(self) -> SqliteBell:
        return SqliteBell(folder_of(self.path))

    def _bury(self, name: str) -> None:
        self.locks.bury(name)

    def _floor_by(self, connection: sqlite3.Connection) -> int:
        return self._floor(connection.execute(QUERIES["retention"]).fetchall())

    def _session(self) -> SqliteSession:
        return SqliteSession(self, connect(self.path, prepare=PREPARE), self.locks)

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


def _runner_of(connection: sqlite3.Connection) -> Run:
    return lambda name, values: connection.execute(QUERIES[name], values).fetchall()


def boot_id() -> str:
    """Names this boot of the machine: steady time starts again with the next."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return f"uid-{os.getuid()}"
