"""A ledger from a URL."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oncekey.core.clock import Clock, SystemClock
from oncekey.core.errors import ConfigurationError
from oncekey.core.ledger import Ledger
from oncekey.core.ports import Store
from oncekey.stores.values import JsonCodec

_FORMS = "sqlite:///file.db, postgresql://user@host/database or memory://"


def open_ledger(
    url: str = "sqlite:///oncekey.db",
    *,
    lease: float = 15.0,
    heartbeat: float | None = None,
    retention: Mapping[str, float] | None = None,
    clock: Clock | None = None,
    migrate: bool = True,
    **options: Any,
) -> Ledger:
    """Open the ledger at `url`.

    `lease`: seconds until a silent process loses its claims. `heartbeat`: seconds between two signs
    of life, a third of the lease unless given. `retention`: seconds by class, for classes of your
    own. `migrate=False` leaves the tables alone and refuses to work on old ones. Other options are
    those of `Ledger`.
    """
    clock = clock or SystemClock()
    beat = lease / 3 if heartbeat is None else heartbeat
    if not 0 < beat < lease:
        raise ConfigurationError("the heartbeat must be shorter than the lease, and both above 0")
    store = store_of(url, clock, lease=lease, heartbeat=beat, migrate=migrate)
    return Ledger(store, codec=JsonCodec(), clock=clock, retention=retention, **options)


def store_of(url: str, clock: Clock, **options: Any) -> Store:
    """The store a URL names, not yet opened."""
    scheme, _, rest = url.partition("://")
    match scheme:
        case "memory":
            from oncekey.stores.memory import MemoryStore

            return MemoryStore()
        case "sqlite":
            from oncekey.stores.sqlite.store import SqliteStore

            return SqliteStore(_path_of(rest, url), clock, **options)
        case "postgresql" | "postgres":
            return _postgres(url, clock, options)
    raise ConfigurationError(f"store url {url!r} is none of: {_FORMS}")


def _path_of(rest: str, url: str) -> Path:
    if not rest.startswith("/") or rest == "/":
        raise ConfigurationError(f"store url {url!r}: write sqlite:///file.db (three slashes)")
    if rest == "/:memory:":
        raise ConfigurationError("a SQLite database in memory cannot be shared; use memory://")
    path = Path(rest[1:]).expanduser()
    if not path.absolute().parent.is_dir():
        raise ConfigurationError(f"store url {url!r}: the folder {path.parent} does not exist")
    return path


def _postgres(url: str, clock: Clock, options: dict[str, Any]) -> Store:
    try:
        from oncekey.stores.postgres.store import PostgresStore
    except ImportError as error:
        raise ConfigurationError(
            f"PostgreSQL needs psycopg ({error}); run: pip install 'oncekey[postgres]'"
        ) from error
    return PostgresStore(url, clock, **options)
