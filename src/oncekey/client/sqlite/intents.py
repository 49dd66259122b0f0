"""Intents in a file that only its owner can read. Several processes may share it."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import threading
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from oncekey.client.answer import Kept
from oncekey.client.intents import Frozen, Record
from oncekey.core.errors import SchemaTooNew, StoreUnavailable

T = TypeVar("T")

_VERSION = 1
_BUSY_SECONDS = 10.0
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_PARTS = _NAME.split((files(__package__) / "intents.sql").read_text())[1:]
QUERIES = dict(zip(_PARTS[::2], _PARTS[1::2], strict=True))


class SqliteIntents:
    """A key is on disk before it is sent, whatever becomes of the machine. What comes before and
    after that outlives the process; to lose it with the power costs nothing but a replay."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._inherited: list[sqlite3.Connection | None] = []
        """Those of a parent: to close one here would disturb the log that it writes."""

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
            "key": record.key, "now": now, "method": method, "url": url,
            "headers": json.dumps(headers), "body": body, "fingerprint": fingerprint,
        }  # fmt: skip

        def act(connection: sqlite3.Connection) -> Record:
            # Given up meanwhile by somebody else: it is captured again, with the key it had.
            again = {**whose, "key": record.key, "now": record.created_at}
            connection.execute(QUERIES["capture"], again)
            connection.execute(QUERIES["freeze"], {**whose, **row})
            return _record_of(connection.execute(QUERIES["one"], whose).fetchone())

        return self._run(act, durable=True)

    def settle(self, record: Record, answer: Kept | None, now: int) -> None:
        row = {
            "origin": record.origin, "name": record.name, "key": record.key, "now": now,
            "status": answer and answer.status, "body": answer and answer.body,
            "headers": answer and json.dumps(answer.headers),
        }  # fmt: skip
        self._run(lambda connection: connection.execute(QUERIES["settle"], row))

    def forget(self, record: Record) -> None:
        row = {"origin": record.origin, "name": record.name, "key": record.key}
        self._run(lambda connection: connection.execute(QUERIES["forget"], row))

    def pending(self, origin: str) -> list[Record]:
        found = self._run(
            lambda connection: connection.execute(QUERIES["pending"], {"origin": origin}).fetchall()
        )
        return [_record_of(row) for row in found]

    def close(self) -> None:
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def _run(self, act: Callable[[sqlite3.Connection], T], *, durable: bool = False) -> T:
        try:
            with self._lock:
                connection = self._open()
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                connection.execute("BEGIN IMMEDIATE")
                try:
                    result = act(connection)
                    connection.execute("COMMIT")
                except BaseException:
                    connection.rollback()
                    raise
                return result
        except (sqlite3.Error, OSError) as error:
            raise StoreUnavailable(f"the intents in {self._path}: {error}") from error

    def _open(self) -> sqlite3.Connection:
        """A connection of this process: one that was inherited by a fork must not be used."""
        if self._connection is None or self._process != os.getpid():
            self._inherited.append(self._connection)
            # Made first, so that nobody else can ever read it; the log beside it is made alike.
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            self._connection = sqlite3.connect(
                self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._process = os.getpid()
            self._prepare(self._connection)
        return self._connection

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
