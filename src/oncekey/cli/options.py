"""Options that every command has, and what they lead to: settings, and an open ledger."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from oncekey.cli.failure import Failure
from oncekey.compose.address import Memory, SqliteFile, address_of
from oncekey.config import DEFAULT_FILE, Settings, load
from oncekey.core.ledger import Ledger

Command = Callable[..., Any]


def configured(command: Command) -> Command:
    """Give `command` the options --config and --url, and it gets `settings` for them."""

    @click.option(
        "--config",
        type=click.Path(path_type=Path),
        envvar="ONCEKEY_CONFIG",
        metavar="FILE",
        help="The configuration file.  [default: ./oncekey.toml, when it exists]",
    )
    @click.option("--url", metavar="URL", help="The store, in place of the configured one.")
    @functools.wraps(command)
    def with_settings(config: Path | None, url: str | None, **arguments: Any) -> Any:
        return command(settings=settings_of(config, {"store.url": url}), **arguments)

    return with_settings


def settings_of(config: Path | None, options: dict[str, Any]) -> Settings:
    """The settings in force; options that were not given count for nothing."""
    if config is None and DEFAULT_FILE.exists():
        config = DEFAULT_FILE
    given = {name: value for name, value in options.items() if value is not None}
    return load(config, os.environ, given)


@contextmanager
def opened(settings: Settings) -> Iterator[Ledger]:
    """The ledger, which must exist already: looking at one does not make it."""
    from oncekey.compose.configured import ledger_of

    match address_of(settings.store.url):
        case Memory():
            raise Failure("memory:// lives inside one process; name a store with --url")
        case SqliteFile(path) if not path.exists():
            hint = "name another with --config or --url, or make one with `oncekey migrate`"
            raise Failure(f"there is no ledger at {path}; {hint}")
        case _:
            ledger = ledger_of(
                settings, hosts=False, migrate=False, cache_bytes=0, sweep_interval=0
            )
    try:
        yield ledger
    finally:
        ledger.close()
