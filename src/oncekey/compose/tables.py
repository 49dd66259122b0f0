"""The tables behind a URL: looked at without opening a ledger, and brought up to date."""

from __future__ import annotations

from typing import NamedTuple

from oncekey.compose.address import Memory, Postgres, Restate, SqliteFile, address_of
from oncekey.core.errors import ConfigurationError
from oncekey.stores.queries import newest
from oncekey.stores.schema import check_not_newer

_NO_TABLES = "memory:// lives inside one process and has no tables; name a store with --url"
_NO_TABLES_THERE = "restate:// keeps everything in Restate's own objects: there are no tables"


class Tables(NamedTuple):
    """`version` 0: there are none yet."""

    version: int
    newest: int


def tables_of(url: str) -> Tables:
    """Raises `SchemaTooNew` for tables that a newer OnceKey made."""
    match address_of(url):
        case SqliteFile(path):
            from oncekey.stores.sqlite.tables import version_at

            return _checked("sqlite", version_at(path))
        case Postgres(address):
            from oncekey.stores.postgres.tables import version_on

            return _checked("postgres", version_on(address))
        case Memory():
            raise ConfigurationError(_NO_TABLES)
        case Restate():
            raise ConfigurationError(_NO_TABLES_THERE)


def _checked(dialect: str, version: int) -> Tables:
    check_not_newer(dialect, version)
    return Tables(version, newest(dialect))


def migrate(url: str) -> list[int]:
    """Run what is missing; answers the versions that were run."""
    match address_of(url):
        case SqliteFile(path):
            from oncekey.stores.sqlite.tables import migrate_at

            return migrate_at(path)
        case Postgres(address):
            from oncekey.stores.postgres.tables import migrate_on

            return migrate_on(address)
        case Memory():
            raise ConfigurationError(_NO_TABLES)
        case Restate():
            raise ConfigurationError(_NO_TABLES_THERE)
