"""Where a ledger lives: a URL, read into one of four places. What is shown holds no secret."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from oncekey.core.errors import ConfigurationError

_FORMS = "sqlite:///file.db, postgresql://user@host/database, restate://host:8080 or memory://"
# Up to the last @: a password may hold one, or a space, that was not encoded. Never a second time:
# the text around a hidden one may hold an @ as well.
_PASSWORD = re.compile(r"(\w+://[^\s:/@]*):(?!\*\*\*@).*@|(password=)[^\s&'\"]*", re.IGNORECASE)


class Memory(NamedTuple):
    """This process, until it ends."""


class SqliteFile(NamedTuple):
    path: Path


class Postgres(NamedTuple):
    url: str


class Restate(NamedTuple):
    url: str


Address = Memory | SqliteFile | Postgres | Restate


def address_of(url: str) -> Address:
    scheme, separator, rest = url.partition("://")
    match scheme if separator else "":
        case "memory":
            return Memory()
        case "sqlite":
            return SqliteFile(_path_of(rest, url))
        case "postgresql" | "postgres":
            _need_psycopg()
            return Postgres(url)
        case "restate":
            _need_restate()
            return Restate(url)
        case _:
            raise ConfigurationError(f"store url {without_secrets(url)!r} is none of: {_FORMS}")


def without_secrets(text: str) -> str:
    """`text` with every password of a URL in it hidden, fit for screens and logs."""
    return _PASSWORD.sub(lambda found: f"{found[1]}:***@" if found[1] else f"{found[2]}***", text)


def _path_of(rest: str, url: str) -> Path:
    if not rest.startswith("/") or rest == "/":
        raise ConfigurationError(f"store url {url!r}: write sqlite:///file.db (three slashes)")
    if rest == "/:memory:":
        raise ConfigurationError("a SQLite database in memory cannot be shared; use memory://")
    path = Path(rest[1:]).expanduser()
    if not path.absolute().parent.is_dir():
        raise ConfigurationError(f"store url {url!r}: the folder {path.parent} does not exist")
    return path


def _need_psycopg() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            f"PostgreSQL needs psycopg ({error}); run: pip install 'oncekey[postgres]'"
        ) from error


def _need_restate() -> None:
    try:
        import restate  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            f"Restate needs its SDK ({error}); run: pip install 'oncekey[restate]'"
        ) from error
