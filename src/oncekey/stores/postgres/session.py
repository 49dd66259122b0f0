"""A writer's session on PostgreSQL: a group of claims and outcomes is one round trip."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors, pq

from oncekey.core.errors import StoreUnavailable
from oncekey.core.ports import Answer, Found, Held, Insert, Peek, Replace, Request, Settle, Take
from oncekey.stores.group import pack_inserts, pack_settles
from oncekey.stores.plans import READS, carry_out
from oncekey.stores.postgres.connection import QUERIES, Connection, failure_of
from oncekey.stores.postgres.severed import backend_of
from oncekey.stores.requests import (
    claim_alone,
    drive,
    found_of,
    held_elsewhere,
    insert_of,
    seen,
)

if TYPE_CHECKING:
    from oncekey.stores.postgres.store import PostgresStore

_FIRST = Held(1)
_READS = READS | {Peek}
_GROUP = b"oncekey_group"
_INT8, _BYTEA, _JSONB = 20, 17, 3802
_TYPES = [_INT8, _INT8, _JSONB, _BYTEA, _JSONB, _BYTEA]
_FORMATS = [pq.Format.BINARY if oid == _BYTEA else pq.Format.TEXT for oid in _TYPES]
# A line that was quiet for longer may have been hung up.
_IDLE_SECONDS = 1.0
_LARGEST = 64 << 20
# Somebody's open transaction is in the way; waiting longer would stop everybody else.
_BLOCKED = (errors.LockNotAvailable, errors.DeadlockDetected)


class PostgresSession:
    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._attach(store.connect())

    def _attach(self, connection: Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor(binary=True)
        self._used_at = time.monotonic()
        try:
            self._backend = backend_of(connection)
            _checked(
                connection.pgconn.prepare(_GROUP, QUERIES["group"].encode(), _TYPES), connection
            )
        except psycopg.Error as error:
            connection.close()
            raise failure_of(error) or error from error

    def commit(self, requests: list[Request]) -> list[Answer]:
        try:
            self._look_at_the_line()
            self._store.severed.end_all(self._connection)
            return [answer for group in _groups_of(requests) for answer in self._commit(group)]
        except psycopg.Error as error:
            self._remember_if_cut()
            raise failure_of(error) or error from error

    def beat(self) -> None:
        try:
            self._store.beat(self._connection)
        except psycopg.Error as error:
            self._remember_if_cut()
            raise StoreUnavailable(f"PostgreSQL: {type(error).__name__}") from error

    def close(self) -> None:
        self._connection.close()

    def _look_at_the_line(self) -> None:
        """A server that was restarted has hung up meanwhile; nothing is sent to it, so nothing is
        in doubt, and nobody needs to hear of it."""
        if time.monotonic() - self._used_at > _IDLE_SECONDS:
            try:
                # Twice: the first reads the server's last words, if it had any.
                self._connection.pgconn.consume_input()
                self._connection.pgconn.consume_input()
            except psycopg.OperationalError:
                self._connection.close()
            if self._connection.closed:
                self._attach(self._store.connect())
        self._used_at = time.monotonic()

    def _commit(self, requests: list[Request]) -> list[Answer]:
        inserts = [request for request in requests if type(request) is Insert]
        settles = [request for request in requests if type(request) is Settle]
        try:
            left_out = self._write(inserts, settles)
        except _BLOCKED:
            # By one of the group; nothing of it went in.
            return [self._alone(request) for request in requests]
        if not left_out and len(inserts) + len(settles) == len(requests):
            return [_FIRST if type(request) is Insert else True for request in requests]
        found = self._find_all([inserts[place - 1].digest for place in left_out if place > 0])
        missed = {
            id(inserts[place - 1] if place > 0 else settles[-place - 1]) for place in left_out
        }
        return [self._answer(request, id(request) in missed, found) for request in requests]

    def _answer(self, request: Request, missed: bool, found: dict[bytes, Found]) -> Answer:
        match request:
            case Insert(number, digest):
                return seen(number, self._store.owner, found.get(digest)) if missed else _FIRST
            case Settle() if not missed:
                return True
        return self._alone(request)

    def _write(self, inserts: list[Insert], settles: list[Settle]) -> list[int]:
        """Write the group; answers the places of the rows that did not go in."""
        if not inserts and not settles:
            return []
        claims, digests = pack_inserts(inserts)
        rows, pieces = pack_settles(settles)
        values = [str(self._store.stale).encode(), claims.encode(), digests, rows.encode(), pieces]
        while (places := self._send(owner := self._store.owner, values)) is None:
            self._store.revive(self._connection, owner)
        return [int(place) for place in places[1:-1].split(b",")] if len(places) > 2 else []

    def _send(self, owner: int, values: list[bytes]) -> bytes | None:
        # One call that lets go of the interpreter once; a cursor would do so several times.
        bound = [str(owner).encode(), *values]
        result = self._connection.pgconn.exec_prepared(_GROUP, bound, _FORMATS)
        return _checked(result, self._connection).get_value(0, 0)

    def _find_all(self, digests: list[bytes]) -> dict[bytes, Found]:
        if not digests:
            return {}
        setting = self._store.setting()
        rows = self._run("find_all", {"digests": digests})
        return {row[-1]: found_of(row, setting) for row in rows}

    def _alone(self, request: Request) -> Answer:
        """One request in a transaction of its own: it holds no lock that others may need."""
        if type(request) in _READS:
            return drive(carry_out(request, self._store.setting()), self._run)
        insert = insert_of(request)
        try:
            if isinstance(request, Insert | Replace | Take):
                self._store.keep_alive(self._connection)
            setting = self._store.setting()
            with self._connection.transaction():
                if insert is not None:
                    return drive(claim_alone(request, insert, setting), self._run)
                return drive(carry_out(request, setting), self._run)
        except _BLOCKED as error:
            return held_elsewhere(insert) if insert is not None else failure_of(error)

    def _run(self, name: str, values: dict[str, Any]) -> list[Any]:
        cursor = self._cursor.execute(QUERIES[name], values, prepare=True)
        return cursor.fetchall() if cursor.description else []

    def _remember_if_cut(self) -> None:
        if self._connection.broken:
            self._store.severed.add(self._backend)


def _groups_of(requests: list[Request]) -> Iterator[list[Request]]:
    """All at once, unless the outcomes among them are too large for one statement."""
    group: list[Request] = []
    size = 0
    for request in requests:
        size += len(request.outcome.body) if type(request) is Settle else 0
        if size > _LARGEST and group:
            yield group
            group, size = [], 0
        group.append(request)
    yield group


def _checked(result: pq.abc.PGresult, connection: Connection) -> pq.abc.PGresult:
    if result.status in {pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK}:
        return result
    if connection.broken:
        raise psycopg.OperationalError("the connection was lost")
    raise errors.error_from_result(result)
