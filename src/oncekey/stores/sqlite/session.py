"""A writer's session on SQLite: a group of claims and outcomes is one statement."""

from __future__ import annotations

import sqlite3
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from oncekey.core.errors import StoreUnavailable
from oncekey.core.ports import Answer, Held, Insert, Peek, Purge, Replace, Request, Settle
from oncekey.stores.group import pack_inserts, pack_settles
from oncekey.stores.queries import load
from oncekey.stores.plans import READS, carry_out
from oncekey.stores.requests import Steps, drive, find, seen, settled
from oncekey.stores.sqlite.connection import is_unavailable
from oncekey.stores.sqlite.locks import Locks

if TYPE_CHECKING:
    from oncekey.stores.sqlite.store import SqliteStore

QUERIES = load("sqlite")
PREPARE = (QUERIES["group_view"], QUERIES["group_trigger"])
_FIRST = Held(1)


class SqliteSession:
    def __init__(self, store: SqliteStore, connection: sqlite3.Connection, locks: Locks) -> None:
        self._store = store
        self._connection = connection
        self._locks = locks
        self._execute = connection.execute

    def commit(self, requests: list[Request]) -> list[Answer]:
        inserts = [request for request in requests if type(request) is Insert]
        settles = [request for request in requests if type(request) is Settle]
        try:
            with self._locks.gate():
                self._store.keep_alive(self._connection)
                owner = self._store.owner
                whole = self._spread(inserts, settles)
                plain = whole and len(inserts) + len(settles) == len(requests)
                others = None if plain else self._carry_out_others(requests)
                # Stopped in the middle: nobody else has looked yet, so there is still time to beat.
                self._store.keep_alive(self._connection)
            if owner != self._store.owner:
                raise StoreUnavailable("this process stood still and was given up meanwhile")
            self._store.checkpointer.wrote(len(requests))
            if others is None:
                return [_FIRST if type(request) is Insert else True for request in requests]
            return [
                self._look_again(request, whole) if type(request) in _GROUPED else next(others)
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

    def _spread(self, inserts: list[Insert], settles: list[Settle]) -> bool:
        """Write the group. True when every row of it went in."""
        if not inserts and not settles:
            return True
        before = self._connection.total_changes
        values = (self._store.owner, *pack_inserts(inserts), *pack_settles(settles))
        self._execute(QUERIES["group"], values)
        return self._connection.total_changes - before == len(inserts) + len(settles)

    def _carry_out_others(self, requests: list[Request]) -> Any:
        """Everything that is not a plain claim or outcome, one by one in one transaction."""
        others = [request for request in requests if type(request) not in _GROUPED]
        if all(type(request) in _READS for request in others):
            return iter([self._drive(carry_out(each, self._store.setting())) for each in others])
        # Whoever remembers an answer that is replaced must not give it when the clock steps back.
        forgets = any(type(request) in _FORGETTING for request in others)
        with self._locks.purging() if forgets else nullcontext():
            self._execute("BEGIN IMMEDIATE")
            try:
                setting = self._store.setting()
                answers = [self._drive(carry_out(request, setting)) for request in others]
                self._execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._execute("ROLLBACK")
                raise
        return iter(answers)

    def _look_again(self, request: Request, whole: bool) -> Answer:
        """Not every row of the group went in: find out what became of this one."""
        match request:
            case Insert(number, digest):
                if whole:
                    return _FIRST
                found = self._drive(find(self._store.setting(), digest=digest))
                return seen(number, self._store.owner, found)
            case Settle():
                return True if whole else self._drive(settled(request))
            case _:
                raise AssertionError(request)

    def _drive(self, steps: Steps) -> Answer:
        return drive(steps, self._run)

    def _run(self, name: str, values: dict[str, Any]) -> list[Any]:
        return self._execute(QUERIES[name], values).fetchall()


_GROUPED = frozenset({Insert, Settle})
_READS = READS | {Peek}
_FORGETTING = frozenset({Purge, Replace})
