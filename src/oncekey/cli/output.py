"""Lists and details: a table for people, JSON for programs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from oncekey.cli.text import escaped, moment

if TYPE_CHECKING:
    from rich.console import Console

# Without a terminal nothing is folded: whoever reads the pipe wants whole lines.
_WIDE = 10_000
_FOREIGN = re.compile(r"[^\n -~]")


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2))


def print_shape(shape: Any) -> None:
    """Durable work in the words of the API. Numbers stay as they were written; what is not ASCII is
    escaped, so that no stored text drives the terminal."""
    import msgspec

    from oncekey.durable.shapes import json_of

    laid_out = msgspec.json.format(json_of(shape), indent=2).decode()
    click.echo(_FOREIGN.sub(lambda found: json.dumps(found[0])[1:-1], laid_out))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD if sys.stdout.isatty() else None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        # Text, not markup: a key may hold [brackets].
        table.add_row(*(Text(escaped(cell)) for cell in row))
    console().print(table)


def print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """`name  value` lines, the names in one column."""
    kept = [(name, value) for name, value in pairs if value]
    width = max(len(name) for name, _ in kept)
    for name, value in kept:
        click.echo(f"{name:<{width}}  {escaped(value)}")


@contextmanager
def looking_back() -> Iterator[Callable[[int], None]]:
    """Tells whoever waits at a terminal how far back a search has come, in ms since 1970."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("looking") as status:
        yield lambda at: status.update(f"looking at what is older than {moment(at)}")


def console() -> Console:
    from rich.console import Console

    width = None if sys.stdout.isatty() else _WIDE
    return Console(width=width, markup=False, emoji=False, highlight=False)
