"""Named SQL from `.sql` files. A block starts with `-- name: x`; comments above the SQL say why."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def load(dialect: str) -> dict[str, str]:
    """The queries of one dialect, by name, from every file in its folder."""
    found = (files(__package__) / dialect).iterdir()
    texts = [entry.read_text() for entry in found if entry.name.endswith(".sql")]
    return named("\n".join(texts))


def named(text: str) -> dict[str, str]:
    """The queries in a text, by name."""
    parts = _NAME.split(text)[1:]
    return dict(zip(parts[::2], (part.strip() for part in parts[1::2]), strict=True))


def migrations(dialect: str) -> list[tuple[int, str]]:
    """(version, SQL) of each migration, oldest first."""
    folder = files(__package__) / dialect / "migrations"
    found = [entry for entry in folder.iterdir() if entry.name.endswith(".sql")]
    return sorted((int(entry.name.partition("_")[0]), entry.read_text()) for entry in found)


def newest(dialect: str) -> int:
    return migrations(dialect)[-1][0]
