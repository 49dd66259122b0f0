"""A store inside Django's own connection: each request joins the transaction that is open there.

Claims are never seen by others before they are settled, so there is nobody to outlive: no
heartbeat, no thread, no second connection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from django.core.exceptions import SynchronousOnlyOperation
from django.db import Error, connections, transaction

from oncekey.core.errors import StoreUnavailable
from oncekey.core.looking import Looked
from oncekey.core.ports import Answer, Beat, Committed, Faults, Found, Query, Request, Waiter
from oncekey.core.waiting import deliver
from oncekey.integrations.django.database import dialect_of
from oncekey.stores.administration import Administration, Run
from oncekey.stores.queries import load
from oncekey.stores.requests import NOBODY, Setting
from oncekey.stores.rows import OWNER
from oncekey.stores.within import ask
from oncekey.stores.within.blocking import runner_of

# Stands in claims that live and end inside one transaction; no process has this number.
_GUEST = -1


class ConnectionStore:
    """`neighbour` answers how a ledger of its own, if this process has one, judges holders."""

    committed: Committed | None = None

    def __init__(self, alias: str, neighbour: Callable[[], Setting | None]) -> None:
        self._alias = alias
        self._neighbour = neighbour

    def open(self, beat: Beat, fault: Faults | None = None) -> None:
        beat(self.retention())

    def submit(self, request: Request, waiter: Waiter) -> None:
        try:
            answer: Any = self.ask_within(connections[self._alias], request)
        except StoreUnavailable as error:
            answer = error
        deliver([(waiter, answer)])

    def ask_within(self, connection: Any, request: Request) -> Answer:
        dialect = dialect_of(connection)
        return self._run(lambda: ask(connection, request, self._setting(), dialect))  # type: ignore[no-any-return]

    async def aask_within(self, connection: Any, request: Request) -> Answer:
        return self.ask_within(connection, request)

    def purge_epoch(self) -> int | None:
        return None

    def list(self, query: Query, now: int) -> Looked[Found]:
        return self._administration.list(query, now)

    def read(self, request: Any) -> Any:
        return self._administration.read(request)

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

    def ring(self) -> None:
        """Nobody else sees anything before the caller's own commit."""

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        heard()
        return lambda: None

    def close(self) -> None:
        """Nothing is held that the connection's own end does not let go of."""

    @cached_property
    def _administration(self) -> Administration:
        return Administration(self._transact, self._setting, bury=_bury)

    def _transact(self, work: Callable[[Run], Any], *, write: bool, durable: bool = False) -> Any:
        connection = connections[self._alias]
        dialect = dialect_of(connection)
        queries = load(dialect)

        def within() -> Any:
            run = runner_of(connection, dialect)
            return work(lambda name, values: run(queries[name], values))

        return self._run(within)

    def _run(self, work: Callable[[], Any]) -> Any:
        """A savepoint where a transaction is open: what fails here must not break the caller's."""
        connection = connections[self._alias]
        try:
            with transaction.atomic(using=self._alias), connection.wrap_database_errors:
                return work()
        except (Error, SynchronousOnlyOperation) as error:
            raise StoreUnavailable(f"{connection.display_name}: {error}") from error

    def _setting(self) -> Setting:
        return self._neighbour() or Setting(_GUEST, _is_nobodys)


def _is_nobodys(row: Sequence[Any]) -> bool:
    """Without a ledger of its own this process cannot tell who else is alive."""
    return bool(row[OWNER] == NOBODY)


def _bury(name: str) -> None:
    """Owners leave nothing behind here."""
