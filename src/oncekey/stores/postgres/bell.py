"""The bell of processes on many machines: a thread that listens at the server, and rings there."""

from __future__ import annotations

import os
import select
import socket
from contextlib import suppress

import psycopg

from oncekey.core.errors import StoreError
from oncekey.stores.bell import PAUSE, Bell, Heard, log
from oncekey.stores.postgres.connection import QUERIES, Connection, Database

_SHORTEST_RETRY, _LONGEST_RETRY = 0.2, 2.0


class PostgresBell(Bell):
    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database
        self._connection: Connection | None = None
        self._rung = False
        self._heard = False
        self._served = False
        """Whether others are heard at present."""
        self._alarm: socket.socket | None = None
        self._signal: socket.socket | None = None

    def ring(self) -> None:
        if self._rung or self.closing.is_set():
            return
        self._rung = True
        self._start()
        self._wake()

    def forget(self) -> None:
        self._end()
        if self._connection is not None:
            # To close it would end it at the server. The child's end of it leads nowhere from now
            # on: whoever keeps a line open keeps the server from seeing that the parent is gone.
            nowhere = open(os.devnull, "r+b")  # noqa: PTH123, SIM115 - a file number is wanted
            with nowhere, suppress(psycopg.Error):
                os.dup2(nowhere.fileno(), self._connection.fileno(), inheritable=False)

    def _begin(self, heard: Heard) -> None:
        if self._served:
            heard()
        # Whoever listens first is told by the thread, once it hears.
        self._start()

    def _start(self) -> None:
        with self._starting:
            if self._alarm is None:
                self._alarm, self._signal = socket.socketpair()
                for end in (self._alarm, self._signal):
                    end.setblocking(False)
        super()._start()

    def _wake(self) -> None:
        if self._signal is not None:
            with suppress(OSError):
                self._signal.send(b"1")

    def _end(self) -> None:
        for end in (self._alarm, self._signal):
            if end is not None:
                end.close()

    # -- the bell's own thread -----------------------------------------------------------

    def _run(self) -> None:
        retry = _SHORTEST_RETRY
        # What was rung before the end is heard, if the server is there.
        while self._rung or not self.closing.is_set():
            try:
                self._serve(self._database.connect())
            except (psycopg.Error, StoreError, OSError) as error:
                if self.closing.is_set():
                    return
                if self._served:
                    log.warning("nobody rings here until PostgreSQL is back: %s", error)
                    retry, self._served = _SHORTEST_RETRY, False
                self.closing.wait(retry)
                retry = min(2 * retry, _LONGEST_RETRY)

    def _serve(self, connection: Connection) -> None:
        """Hear and ring, until the connection is lost or the bell is closed."""
        try:
            self._connection = connection
            self._listen(connection)
            assert self._alarm is not None
            poll = select.poll()
            poll.register(connection.fileno(), select.POLLIN)
            poll.register(self._alarm, select.POLLIN)
            while not self.closing.is_set():
                if not self._heard and not self._rung:
                    poll.poll()
                    _drain(self._alarm)
                self._turn(connection)
            if self._rung:
                self._ring_at(connection)
        finally:
            # First: the number of a file that is closed may be another's, which a fork would hurt.
            self._connection = None
            connection.close()

    def _listen(self, connection: Connection) -> None:
        row = connection.execute(QUERIES["bell"]).fetchone()
        assert row is not None
        tables: str = row[0]
        ours = connection.info.backend_pid

        def notice(notify: psycopg.Notify) -> None:
            self._heard = self._heard or (notify.payload == tables and notify.pid != ours)

        connection.add_notify_handler(notice)
        connection.execute(QUERIES["listen"])
        # What happened before is heard of now.
        self._heard = self._served = True

    def _turn(self, connection: Connection) -> None:
        if self._rung:
            self._ring_at(connection)
        _look(connection)
        if self._heard:
            self._heard = False
            self.listeners.tell()
        self.closing.wait(PAUSE)

    def _ring_at(self, connection: Connection) -> None:
        self._rung = False
        try:
            connection.execute(QUERIES["ring"])
        except psycopg.Error:
            self._rung = True
            raise


def _drain(alarm: socket.socket) -> None:
    with suppress(BlockingIOError):
        alarm.recv(4096)


def _look(connection: Connection) -> None:
    """Hand what has come over to the connection's handlers."""
    connection.pgconn.consume_input()
    if connection.closed:
        raise psycopg.OperationalError("the connection was lost")
    while (found := connection.pgconn.notifies()) is not None:
        if connection.pgconn.notify_handler is not None:
            connection.pgconn.notify_handler(found)
