"""A writer's session on PostgreSQL: claims and outcomes of a group are one round trip, starts and
what runs have done another."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors, pq

from oncekey.core.errors import StoreUnavailable
from oncekey.core.execution import Status
from oncekey.core.ports import Found, Insert, Peek, Replace, Settle, Take
from oncekey.core.work import Await, PickUp, Resolve, Spawn, Start
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
from oncekey.stores.sorting import Sorted, answer_of
from oncekey.stores.work.bulk import Hot, number_of, pack, size_of
from oncekey.stores.work.plans import PLANS as WORK

if TYPE_CHECKING:
    from oncekey.stores.postgres.store import PostgresStore

_READS = READS | {Peek}
_INT8, _BYTEA, _JSONB = 20, 17, 3802
# Prepared once per connection, with the types of what they are given.
_GROUP, _WORK = b"oncekey_group", b"oncekey_work"
_PREPARED = {
    _GROUP: (_INT8, _INT8, _JSONB, _BYTEA, _JSONB, _BYTEA),
    _WORK: (_INT8, _INT8, *(_JSONB,) * 7, _BYTEA),
}
_FORMATS = {
    name: [pq.Format.BINARY if oid == _BYTEA else pq.Format.TEXT for oid in oids]
    for name, oids in _PREPARED.items()
}
# A line that was quiet for longer may have been hung up.
_IDLE_SECONDS = 1.0
_LARGEST = 64 << 20
# Somebody's open transaction is in the way; waiting longer would stop everybody else.
_BLOCKED = (errors.LockNotAvailable, errors.DeadlockDetected)
_TRIES = 2
# So many in one transaction: their locks are held until the last of them is done.
_TOGETHER = 16
_WORK_TOGETHER = WORK.keys() - READS
_LONGEST_PAUSE = 0.05


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
            for name in _PREPARED:
                self._prepare(name)
        except psycopg.Error as error:
            connection.close()
            raise failure_of(error) or error from error

    def _prepare(self, name: bytes) -> None:
        sql, oids = QUERIES[name.decode().removeprefix("oncekey_")].encode(), list(_PREPARED[name])
        _checked(self._connection.pgconn.prepare(name, sql, oids), self._connection)

    def commit(self, requests: list[Any]) -> list[Any]:
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

    def _commit(self, requests: list[Any]) -> list[Any]:
        group = Sorted(requests)
        found = self._claim(group)
        owner, alone = self._work(group)
        alone.update(id(request) for request in group.others)
        found |= self._carry_out([request for request in requests if id(request) in alone])
        return [
            found[id(request)] if id(request) in found else answer_of(request, owner)
            for request in requests
        ]

    def _carry_out(self, requests: list[Any]) -> dict[int, Any]:
        """What needs steps of its own: durable work a few at a time, everything else one by one."""
        work = [request for request in requests if type(request) in _WORK_TOGETHER]
        answers: dict[int, Any] = {}
        for start in range(0, len(work), _TOGETHER):
            answers |= self._together(work[start : start + _TOGETHER])
        for request in requests:
            if id(request) not in answers:
                answers[id(request)] = self._alone(request)
        return answers

    def _together(self, requests: list[Any]) -> dict[int, Any]:
        """Several in one transaction, and on disk by one commit; when somebody is in the way of
        one of them, each by itself."""
        if len(requests) == 1:
            return {}
        try:
            if any(map(_makes_ours, requests)):
                self._store.keep_alive(self._connection)
            setting = self._store.setting()
            with self._connection.transaction():
                self._run("hurry", {})
                return {id(each): drive(carry_out(each, setting), self._run) for each in requests}
        except _BLOCKED:
            return {}

    def _claim(self, group: Sorted) -> dict[int, Any]:
        """Write claims and outcomes; answers what became of those that did not go in."""
        inserts, settles = group.inserts, group.settles
        if not inserts and not settles:
            return {}
        claims, digests = pack_inserts(inserts)
        rows, pieces = pack_settles(settles)
        try:
            _, places = self._send(
                _GROUP, lambda _: [claims.encode(), digests, rows.encode(), pieces]
            )
        except _BLOCKED:
            # By one of the group; nothing of it went in.
            return {id(request): self._alone(request) for request in (*inserts, *settles)}
        missed = [inserts[place - 1] for place in places if place > 0]
        found = self._find_all([insert.digest for insert in missed])
        answers: dict[int, Any] = {
            id(insert): seen(insert.id, self._store.owner, found.get(insert.digest))
            for insert in missed
        }
        for place in places:
            if place < 0:
                answers[id(settles[-place - 1])] = self._alone(settles[-place - 1])
        return answers

    def _work(self, group: Sorted) -> tuple[int, set[int]]:
        """Write starts and what runs have done, for the owner answered; with those of them that are
        to be carried out alone."""
        works = group.works
        if not works:
            return self._store.owner, set()
        try:
            owner, numbers = self._send(_WORK, lambda owner: _values_of(works, owner))
        except _BLOCKED:
            return self._store.owner, {id(request) for request in works}
        if not numbers:
            return owner, set()
        left_out = set(numbers)
        return owner, {id(request) for request in works if number_of(request) in left_out}

    def _send(self, name: bytes, values: Callable[[int], list[bytes]]) -> tuple[int, list[int]]:
        """Run a prepared statement for the owner, who must be alive; with what it answers."""
        while True:
            owner = self._store.owner
            bound = [str(owner).encode(), str(self._store.stale).encode(), *values(owner)]
            # One call that lets go of the interpreter once; a cursor would do so several times.
            result = self._connection.pgconn.exec_prepared(name, bound, _FORMATS[name])
            try:
                numbers = _checked(result, self._connection).get_value(0, 0)
            except errors.InvalidSqlStatementName:
                # After a rollback the driver drops what is prepared, also what it did not prepare.
                self._prepare(name)
                continue
            if numbers is not None:
                return owner, [int(each) for each in numbers[1:-1].split(b",") if each]
            self._store.revive(self._connection, owner)

    def _find_all(self, digests: list[bytes]) -> dict[bytes, Found]:
        if not digests:
            return {}
        setting = self._store.setting()
        rows = self._run("find_all", {"digests": digests})
        return {row[-1]: found_of(row, setting) for row in rows}

    def _alone(self, request: Any) -> Any:
        """One request in a transaction of its own: it holds no lock that others may need."""
        if type(request) in _READS:
            return drive(carry_out(request, self._store.setting()), self._run)
        insert = insert_of(request)
        # Executions that call each other may lock each other; another try finds one of them done.
        tries = _TRIES if type(request) in WORK else 1
        while True:
            try:
                return self._transact(request, insert)
            except _BLOCKED as error:
                tries -= 1
                if not tries:
                    return held_elsewhere(insert) if insert is not None else failure_of(error)
            # Not at the same moment as whoever was in the way.
            time.sleep(random.uniform(0, _LONGEST_PAUSE))  # noqa: S311 - not for a secret

    def _transact(self, request: Any, insert: Insert | None) -> Any:
        if _makes_ours(request):
            self._store.keep_alive(self._connection)
        setting = self._store.setting()
        with self._connection.transaction():
            if insert is not None:
                return drive(claim_alone(request, insert, setting), self._run)
            return drive(carry_out(request, setting), self._run)

    def _run(self, name: str, values: dict[str, Any]) -> list[Any]:
        cursor = self._cursor.execute(QUERIES[name], values, prepare=True)
        return cursor.fetchall() if cursor.description else []

    def _remember_if_cut(self) -> None:
        if self._connection.broken:
            self._store.severed.add(self._backend)


def _makes_ours(request: Any) -> bool:
    """Whether something may be held by this process afterwards."""
    match request:
        case Insert() | Replace() | Take() | PickUp() | Spawn():
            return True
        case Start(execution=execution):
            return execution.status is Status.RUNNING
        case Await(start=start):
            return start is not None
        case Resolve(adopt=adopt):
            return bool(adopt)
        case _:
            return False


def _values_of(works: list[Hot], owner: int) -> list[bytes]:
    texts, pieces, _ = pack(works, owner)
    return [*(text.encode() for text in texts), pieces]


def _groups_of(requests: list[Any]) -> Iterator[list[Any]]:
    """All at once, unless the bytes in them are too many for one statement."""
    group: list[Any] = []
    size = 0
    for request in requests:
        size += len(request.outcome.body) if type(request) is Settle else size_of(request)
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
