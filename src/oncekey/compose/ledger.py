"""A ledger from a URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oncekey.compose.address import Memory, Postgres, Restate, SqliteFile, address_of
from oncekey.core.clock import Clock, SystemClock
from oncekey.core.errors import ConfigurationError
from oncekey.core.ledger import Ledger
from oncekey.core.ports import Store
from oncekey.core.retention import DEFAULT_CLASSES
from oncekey.stores.restate.options import RestateOptions
from oncekey.stores.values import JsonCodec


def open_ledger(
    url: str = "sqlite:///oncekey.db",
    *,
    lease: float = 15.0,
    heartbeat: float | None = None,
    retention: Mapping[str, float] | None = None,
    clock: Clock | None = None,
    migrate: bool = True,
    restate: RestateOptions | None = None,
    **options: Any,
) -> Ledger:
    """Open the ledger at `url`.

    `lease`: seconds until a silent process loses its claims. `heartbeat`: seconds between two signs
    of life, a third of the lease unless given. `retention`: seconds by class, for classes of your
    own. `migrate=False` leaves the tables alone and refuses to work on old ones. `restate`: how
    this process takes part in a cluster. Other options are those of `Ledger`.
    """
    clock = clock or SystemClock()
    beat = lease / 3 if heartbeat is None else heartbeat
    if not 0 < beat < lease:
        raise ConfigurationError("the heartbeat must be shorter than the lease, and both above 0")
    cluster = restate or RestateOptions(classes={**DEFAULT_CLASSES, **(retention or {})})
    store = store_of(url, clock, cluster, lease=lease, heartbeat=beat, migrate=migrate)
    return Ledger(store, codec=JsonCodec(), clock=clock, retention=retention, **options)


def store_of(
    url: str, clock: Clock, restate: RestateOptions | None = None, **options: Any
) -> Store:
    """The store a URL names, not yet opened."""
    match address_of(url):
        case Memory():
            from oncekey.stores.memory.store import MemoryStore

            return MemoryStore()
        case SqliteFile(path):
            from oncekey.stores.sqlite.store import SqliteStore

            return SqliteStore(path, clock, **options)
        case Postgres(address):
            from oncekey.stores.postgres.store import PostgresStore

            return PostgresStore(address, clock, **options)
        case Restate(address):
            from oncekey.stores.restate.place import place_of
            from oncekey.stores.restate.store import RestateStore

            return RestateStore(place_of(address), clock, options=restate, **options)
