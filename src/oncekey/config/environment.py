"""Settings from the environment: `ONCEKEY_STORE__URL` is `url` in `[store]`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oncekey.config.kinds import FromEnvironment

PREFIX = "ONCEKEY_"
_SEPARATOR = "__"


def path_of(variable: str) -> tuple[str, ...] | None:
    """The setting a variable names. Without `__` it is none: orchestrators set `ONCEKEY_PORT` and
    the like for a service of that name."""
    name = variable.removeprefix(PREFIX)
    if name == variable or _SEPARATOR not in name:
        return None
    return tuple(part.lower() for part in name.split(_SEPARATOR))


def variable_of(path: tuple[str | int, ...]) -> str:
    return PREFIX + _SEPARATOR.join(str(part) for part in path).upper()


def table_of(environ: Mapping[str, str]) -> dict[str, Any]:
    """All settings of the environment as one nested table."""
    table: dict[str, Any] = {}
    for variable in sorted(environ):
        path = path_of(variable)
        if path is not None:
            _put(table, path, FromEnvironment(environ[variable]))
    return table


def _put(table: dict[str, Any], path: tuple[str, ...], value: str) -> None:
    *outer, last = path
    for part in outer:
        if not isinstance(table.get(part), dict):
            table[part] = {}
        table = table[part]
    table[last] = value
