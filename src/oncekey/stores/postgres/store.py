"""The PostgreSQL store: processes on many machines share a ledger, and the database's clock."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import psycopg

from oncekey.core.clock import Clock
from oncekey.core.errors import StoreUnavailable
from oncekey.stores import schema
from oncekey.stores.administration import Run
from oncekey.stores.desk import Desk
from oncekey.stores.postgres.bell import PostgresBell
from oncekey.stores.postgres.connection import QUERIES, Connection, Database, failure_of
from oncekey.stores.postgres.session import PostgresSession
from oncekey.stores.postgres.severed import Severed
from oncekey.stores.queries import newest
from oncekey.stores.rows import OWNER_HEARTBEAT
from oncekey.stores.sql import SqlStore

_MIGRATION_TIMEOUT = 60_000
_DESK_LOCK_TIMEOUT = 5_000


class PostgresStore(SqlStore):
    dialect = "postgres"
    # While one group waits for the disk, the next is on its way.
    writers = 2

    def __init__(self, url: str, clock: Clock, **options: Any) -> None:
        super().__init__(clock, **options)
        self._database = Database(url)
        self.severed = Severed()
        self.stale = self.lease // 2
        """How old, in ms, a heartbeat may be under which something is claimed."""
        self._reviving = threading.Lock()
        self._desk = self._new_desk()
        self._inherited: list[Any] = []

    def connect(self) -> Connection:
        """A connection for a writer."""
        return self._database.connect()

    def revive(self, connection: Connection, dead: int) -> None:
        """Silent for so long that others have buried us: start a new life, one for all writers."""
        with self._reviving:
            if self.owner == dead:
                self._register(connection)

    def beat(self, connection: Connection) -> None:
        values = {"owner": self.owner, "floor": self._floor_by(connection)}
        if connection.execute(QUERIES["beat"], values).fetchone() is None:
            self.revive(connection, values["owner"])
        self._has_beaten(self._clock.steady())
        self._desk.rest()

    def keep_alive(self, connection: Connection) -> None:
        """Before a claim: the heartbeat it stands under must not be stale."""
        values = {"owner": self.owner, "stale": self.stale}
        if connection.execute(QUERIES["keep_alive"], values).fetchone() is None:
            self.revive(connection, values["owner"])

    def transact(self, work: Callable[[Run], Any], *, write: bool, durable: bool = False) -> Any:
        reused = self._desk.is_open
        try:
            return self._transact(work, durable=durable or not write)
        except StoreUnavailable:
            if not reused:
                raise
            # It may be the old connection that is gone, not the server.
            return self._transact(work, durable=durable or not write)

    def forget_parent(self) -> None:
        super().forget_parent()
        self.severed = Severed()
        self._reviving = threading.Lock()
        # Kept, so that nothing closes what the parent still uses.
        self._inherited.append(self._desk)
        self._desk = self._new_desk()

    def _arrive(self) -> None:
        connection = self._database.connect(
            statement_timeout=_MIGRATION_TIMEOUT, lock_timeout=_MIGRATION_TIMEOUT
        )
        try:
            self._prepare(connection)
            self._register(connection)
        except psycopg.Error as error:
            raise failure_of(error) or error from error
        finally:
            connection.close()

    def _register(self, connection: Connection) -> None:
        """A row for this process; its number stands in every claim."""
        values = {
            "name": secrets.token_hex(8),
            "host": socket.gethostname(),
            "now": self._clock.now(),
            "floor": self._floor_by(connection),
        }
        row = connection.execute(QUERIES["register"], values).fetchone()
        assert row is not None
        self.owner = int(row[0])
        self._has_beaten(self._clock.steady())

    def _leave(self) -> None:
        # A server that is away sees us silent; that is as good, only later.
        with suppress(StoreUnavailable):
            self.transact(lambda run: run("retire", {"owner": self.owner}), write=True)
        self._desk.close()

    def _is_gone(self, row: Sequence[Any]) -> bool:
        silence = row[OWNER_HEARTBEAT]
        if silence is None:
            return True
        return silence > self.lease and self._may_judge(self._clock.steady())

    def _new_bell(self) -> PostgresBell:
        return PostgresBell(self._database)

    def _session(self) -> PostgresSession:
        return PostgresSession(self)

    def _floor_by(self, connection: Connection) -> int:
        return self._floor(connection.execute(QUERIES["retention"]).fetchall())

    def _new_desk(self) -> Desk[Connection]:
        return Desk(lambda: self._database.connect(lock_timeout=_DESK_LOCK_TIMEOUT))

    def _transact(self, work: Callable[[Run], Any], *, durable: bool) -> Any:
        try:
            with self._desk.borrow() as connection, connection.transaction():
                if not durable:
                    # What a sweep deletes may come back after a crash: it is expired still.
                    connection.execute("SET LOCAL synchronous_commit = off")
                return work(_runner_of(connection))
        except psycopg.Error as error:
            raise failure_of(error) or error from error

    def _prepare(self, connection: Connection) -> None:
        def execute(sql: str, values: dict[str, Any]) -> list[Any]:
            cursor = connection.execute(sql, values)
            return cursor.fetchall() if cursor.description else []

        def script(sql: str) -> None:
            connection.execute(sql)

        if self._migrate and schema.version_of("postgres", execute) != newest("postgres"):
            with connection.transaction():
                connection.execute(QUERIES["lock_schema"])
                schema.migrate("postgres", execute, script)
        schema.check("postgres", schema.version_of("postgres", execute))


def _runner_of(connection: Connection) -> Run:
    def run(name: str, values: dict[str, Any]) -> list[Any]:
        cursor = connection.execute(QUERIES[name], values)
        return cursor.fetchall() if cursor.description else []

    return run
