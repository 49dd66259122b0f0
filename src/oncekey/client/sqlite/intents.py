"""Intents in a file that only its owner can read. Several processes may share it."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from oncekey.client.answer import Kept
from oncekey.client.intents import Frozen, Record
from oncekey.core.errors import SchemaTooNew, StoreUnavailable
from oncekey.core.fork import around_forks
from oncekey.stores.private_file import make_private
from oncekey.stores.queries import named

T = TypeVar("T")

_VERSION = 1
_BUSY_SECONDS = 10.0
QUERIES = named((files(__package__) / "intents.sql").read_text())


class SqliteIntents:
    """A key is on disk before it is sent, whatever becomes of the machine. What comes before and
    after that outlives the process; to lose it with the power costs nothing but a replay."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._inherited: list[sqlite3.Connection | None] = []
        """Those of a parent: to close one here would disturb the log that it writes."""
        around_forks(self, in_child=SqliteIntents._renew)

    def capture(self, origin: str, name: str, key: str, now: int, forget_before: int) -> Record:
        whose = {"origin": origin, "name": name}

        def act(connection: sqlite3.Connection) -> Record:
            connection.execute(QUERIES["expire"], {**whose, "before": forget_before})
            connection.execute(QUERIES["sweep"], {"before": forget_before})
            connection.execute(QUERIES["capture"], {**whose, "key": key, "now": now})
            return _record_of(connection.execute(QUERIES["one"], whose).fetchone())

        return self._run(act)

    def freeze(self, record: Record, request: Frozen, now: int) -> Record:
        whose = {"origin": record.origin, "name": record.name}
        method, url, headers, body, fingerprint = request
        row = {
            "key": record.key, "method": method, "url": url,
            "sent_at": now if record.sent_at is None else record.sent_at,
            "headers": json.dumps(headers), "body": body, "fingerprint": fingerprint,
        }  # fmt: skip

        def act(connection: sqlite3.Connection) -> Record:
            # Given up meanwhile by somebody else: it is captured again, with the key it had.
            again = {**whose, "key": record.key, "now": record.created_at}
            connection.execute(QUERIES["capture"], again)
            connection.execute(QUERIES["freeze"], {**whose, **row})
            return _record_of(connection.execute(QUERIES["one"], whose).fetchone())

        return self._run(act, durable=True)

    def find(self, record: Record) -> Record | None:
        whose = {"origin": record.origin, "name": record.name}
        row = self._run(lambda connection: connection.execute(QUERIES["one"], whose).fetchone())
        found = None if row is None else _record_of(row)
        return found if found is not None and found.key == record.key else None

    def settle(self, record: Record, answer: Kept | None, now: int) -> None:
        row = {
            "origin": record.origin, "name": record.name, "key": record.key, "now": now,
            "status": answer and answer.status, "body": answer and answer.body,
            "headers": answer and json.dumps(answer.headers),
        }  # fmt: skip
        self._run(lambda connection: connection.execute(QUERIES["settle"], row))

    def forget(self, record: Record) -> None:
        row = {"origin": record.origin, "name": record.name, "key": record.key}
        # What was given up must not come back, and be sent.
        self._run(lambda connection: connection.execute(QUERIES["forget"], row), durable=True)

    def pending(self, origin: str) -> list[Record]:
        found = self._run(
            lambda connection: connection.execute(QUERIES["pending"], {"origin": origin}).fetchall()
        )
        return [_record_of(row) for row in found]

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _run(self, act: Callable[[sqlite3.Connection], T], *, durable: bool = False) -> T:
        try:
            with self._lock:
                connection = self._connection = self._connection or self._open()
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                try:
                    connection.execute("BEGIN IMMEDIATE")
                    result = act(connection)
                    connection.execute("COMMIT")
                except BaseException:
                    connection.rollback()
                    raise
                return result
        except (sqlite3.Error, OSError) as error:
            raise StoreUnavailable(f"the intents in {self._path}: {error}") from error

    def _open(self) -> sqlite3.Connection:
        # Made first, so that nobody else can ever read it; the log beside it is made alike.
        make_private(self._path)
        connection = sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _renew(self) -> None:
        """In a forked child: the connection is the parent's, and so is whoever held the lock."""
        self._lock = threading.Lock()
        self._inherited.append(self._connection)
        self._connection = None

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > _VERSION:
            raise SchemaTooNew(f"the intents in {self._path} were made by a newer OnceKey")
        connection.execute(QUERIES["schema"])
        connection.execute(QUERIES["index_done"])
        connection.execute(f"PRAGMA user_version = {_VERSION}")


def _record_of(row: tuple[Any, ...]) -> Record:
    origin, name, key, created_at, sent_at, method, url, headers, body, fingerprint, *done = row
    done_at, status, answer_headers, answer = done
    return Record(
        origin,
        name,
        key,
        created_at,
        sent_at,
        None if method is None else Frozen(method, url, _lines(headers), body, fingerprint),
        done_at,
        None if status is None else Kept(status, _lines(answer_headers), answer),
    )


def _lines(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in json.loads(text))
