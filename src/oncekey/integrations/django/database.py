"""What Django knows of a database, in the ledger's words: its dialect, address and transaction."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode

from oncekey.core.errors import ConfigurationError

DIALECTS = {"sqlite": "sqlite", "postgresql": "postgres"}
# What Django adds for itself, beside the parameters of libpq that pass through.
_DJANGO_ONLY = frozenset({"prepare_threshold", "client_encoding"})


def dialect_of(connection: Any) -> str:
    """The store's dialect for a connection."""
    dialect = DIALECTS.get(connection.vendor)
    if dialect is None:
        raise ConfigurationError(
            f"the database {connection.alias!r} is {connection.display_name}; point "
            "IDEMPOTENCY_DATABASE to one that is SQLite or PostgreSQL"
        )
    return dialect


def is_in_memory(connection: Any) -> bool:
    return connection.vendor == "sqlite" and bool(connection.is_in_memory_db())


def is_in_test(connection: Any) -> bool:
    """Whether a test case holds the transaction: it is rolled back, and nobody else will see it."""
    return any(getattr(block, "_from_testcase", False) for block in connection.atomic_blocks)


def is_atomic(connection: Any) -> bool:
    """Whether the caller runs in a transaction of its own making, not of a test case's."""
    blocks = connection.atomic_blocks
    return bool(connection.in_atomic_block) and not (
        blocks and getattr(blocks[-1], "_from_testcase", False)
    )


def address_of(connection: Any) -> tuple[Any, ...]:
    """Changes when the connection leads elsewhere, as it does when a test database takes over."""
    given = connection.settings_dict
    return given["ENGINE"], str(given["NAME"]), given["HOST"], given["PORT"], given["USER"]


def url_of(connection: Any) -> str:
    """The ledger's URL of a database. It may hold a password: open it, never show or keep it."""
    if dialect_of(connection) == "sqlite":
        return f"sqlite:///{_file_of(str(connection.settings_dict['NAME']))}"
    given = connection.get_connection_params()
    parameters = {
        name: str(value)
        for name, value in given.items()
        if isinstance(value, str | int | Path) and name not in _DJANGO_ONLY
    }
    role = connection.settings_dict["OPTIONS"].get("assume_role")
    if role:
        parameters["options"] = f"{parameters.get('options', '')} -c role={role}".strip()
    # Everything as a parameter: hosts may be sockets, and names may hold any character.
    return "postgresql:///?" + urlencode(parameters, quote_via=quote)


def _file_of(name: str) -> str:
    if not name.startswith("file:"):
        return name
    return unquote(name.removeprefix("file:").partition("?")[0])
