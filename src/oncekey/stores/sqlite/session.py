"""A writer's session on SQLite: a group of claims and outcomes is one statement."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from oncekey.core.errors import StoreUnavailable
from oncekey.core.ports import Insert, Peek, Purge, Replace, Settle
from oncekey.stores.group import pack_inserts, pack_settles
from oncekey.stores.plans import READS, carry_out
from oncekey.stores.queries import load
from oncekey.stores.requests import Steps, drive, find, seen, settled
from oncekey.stores.sorting import FIRST, Sorted, answer_of
from oncekey.stores.sqlite.connection import is_unavailable
from oncekey.stores.sqlite.locks import Locks
from oncekey.stores.work.bulk import Hot, pack

if TYPE_CHECKING:
    from oncekey.stores.sqlite.store import SqliteStore

QUERIES = load("sqlite")
PREPARE = tuple(
    QUERIES[name] for name in ("group_view", "group_trigger", "work_view", "work_trigger")
)


class SqliteSession:
    def __init__(self, store: SqliteStore, connection: sqlite3.Connection, locks: Locks) -> None:
        self._store = store
        self._connection = connection
        self._locks = locks
        self._execute = connection.execute

    def commit(self, requests: list[Any]) -> list[Any]:
        group = Sorted(requests)
        try:
            with self._locks.gate():
                self._store.keep_alive(self._connection)
                owner = self._store.owner
                whole = self._spread(group)
                others = None if whole and group.is_plain else self._carry_out_others(group, whole)
                # Stopped in the middle: nobody else has looked yet, so there is still time to beat.
                self._store.keep_alive(self._connection)
            if owner != self._store.owner:
                raise StoreUnavailable("this process stood still and was given up meanwhile")
            self._store.checkpointer.wrote(len(requests))
            if others is None:
                return [answer_of(request, owner) for request in requests]
            return [
                others[id(request)] if id(request) in others else self._look_again(request, whole)
                for request in requests
            ]
        except sqlite3.Error as error:
            if is_unavailable(error):
                raise StoreUnavailable(f"SQLite: {error}") from error
            raise

    def beat(self) -> None:
        try:
            self._store.beat(self._connection)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"SQLite: {error}") from error

    def close(self) -> None:
        self._connection.close()

    def _spread(self, group: Sorted) -> bool:
        """Write the group. True when every row of it went in."""
        inserts, settles, works = group.inserts, group.settles, group.works
        claims = bool(inserts or settles)
        if not claims and not works:
            return True
        before, rows = self._connection.total_changes, len(inserts) + len(settles)
        if claims and works:
            with self._transaction():
                self._write_claims(inserts, settles)
                rows += self._write_work(works)
        elif works:
            rows += self._write_work(works)
        else:
            self._write_claims(inserts, settles)
        return self._connection.total_changes - before == rows

    def _write_claims(self, inserts: list[Insert], settles: list[Settle]) -> None:
        values = (self._store.owner, *pack_inserts(inserts), *pack_settles(settles))
        self._execute(QUERIES["group"], values)

    def _write_work(self, works: list[Hot]) -> int:
        texts, pieces, rows = pack(works, self._store.owner)
        self._execute(QUERIES["work"], (*texts, pieces))
        return rows

    def _carry_out_others(self, group: Sorted, whole: bool) -> dict[int, Any]:
        """Everything that is not in a group, and durable work of one that did not go in as a whole:
        one by one in one transaction."""
        others = group.others if whole else group.others + group.works
        setting = self._store.setting()
        if all(type(request) in _READS for request in others):
            return {id(each): self._drive(carry_out(each, setting)) for each in others}
        # Whoever remembers an answer that is replaced must not give it when the clock steps back.
        forgets = any(type(request) in _FORGETTING for request in others)
        with self._locks.purging() if forgets else nullcontext(), self._transaction():
            return {id(each): self._drive(carry_out(each, setting)) for each in others}

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._execute("BEGIN IMMEDIATE")
        try:
            yield
            self._execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._execute("ROLLBACK")
            raise

    def _look_again(self, request: Any, whole: bool) -> Any:
        """Not every row of the group went in: find out what became of this one."""
        match request:
            case Insert(number, digest):
                if whole:
                    return FIRST
                found = self._drive(find(self._store.setting(), digest=digest))
                return seen(number, self._store.owner, found)
            case Settle():
                return True if whole else self._drive(settled(request))
            case _:
                return answer_of(request, self._store.owner)

    def _drive(self, steps: Steps) -> Any:
        return drive(steps, self._run)

    def _run(self, name: str, values: dict[str, Any]) -> list[Any]:
        return self._execute(QUERIES[name], values).fetchall()


_READS = READS | {Peek}
_FORGETTING = frozenset({Purge, Replace})
