"""`oncekey check`: is the configuration right, and can what it names be reached."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import click

from oncekey.cli.failure import Failure
from oncekey.cli.options import configured
from oncekey.cli.text import escaped
from oncekey.compose.address import Memory, Restate, address_of, without_secrets
from oncekey.config import Settings
from oncekey.config.cautions import cautions_of
from oncekey.config.variables import Variable, variables_of

_NO_FILE = "there is no oncekey.toml here: only the environment was checked; --config names a file"


@click.command()
@configured
@click.option("--offline", is_flag=True, help="Try to reach nothing, and need no secrets.")
@click.option("--strict", is_flag=True, help="Take warnings for mistakes: exit code 1.")
def check(settings: Settings, *, offline: bool, strict: bool) -> None:
    """Validate the configuration, and reach what it names.

    Every mistake is told, each with its file, its line and a way out. What cannot be reached just
    now, an upstream or the keys of tokens, is a warning; a store that cannot be is a mistake.
    Nothing is changed: a store that does not exist yet is not made.

    \b
    Examples:
      oncekey check
      oncekey check --config deploy/oncekey.toml --offline
      oncekey check --strict
    """
    click.echo(f"configuration: ok, {_counted(settings)}")
    for name, target in _targets_of(settings):
        _check_target(name, target, settings.folder)
    warnings = [] if settings.file is not None else [_NO_FILE]
    warnings += [*cautions_of(settings), *_check_secrets(settings, offline=offline)]
    if not offline and (settings.upstreams or settings.auth.jwt is not None):
        warnings += asyncio.run(_reach(settings))
    warnings += _check_store(settings, offline=offline)
    for each in warnings:
        click.echo(f"warning: {escaped(each)}", err=True)
    if warnings and strict:
        raise Failure(f"{len(warnings)} warning{'' if len(warnings) == 1 else 's'}, see above")


def _counted(settings: Settings) -> str:
    counts = {
        "route": settings.routes,
        "upstream": settings.upstreams,
        "provider": settings.providers,
        "schedule": settings.schedules,
    }
    return ", ".join(
        f"{len(each)} {name}{'' if len(each) == 1 else 's'}"
        for name, each in counts.items()
        if each or name == "route"
    )


def _check_secrets(settings: Settings, *, offline: bool) -> list[str]:
    """Those of this machine need not be those of the one that serves."""
    variables = list(variables_of(settings))
    missing = [each for each in variables if not os.environ.get(each.name)]
    if missing and offline:
        return [_not_set(each) for each in missing]
    if missing:
        raise Failure("\n".join(_not_set(each) for each in missing))
    for each in variables:
        click.echo(f"{each.setting}: {each.name}, set")
    if settings.auth.jwt is not None:
        _check_identities(settings)
    return []


def _not_set(each: Variable) -> str:
    return f"{each.setting}: the variable {each.name} is not set; put the secret into it"


def _check_identities(settings: Settings) -> None:
    """Keys are read from where they are, as they are when the server starts."""
    from oncekey.compose.identities import identities_of
    from oncekey.compose.ledger import open_ledger

    ledger = open_ledger("memory://")
    try:
        identities_of(settings, ledger)
    finally:
        ledger.close()


async def _reach(settings: Settings) -> list[str]:
    from oncekey.cli.reaching import reached_by

    warnings: list[str] = []
    async for each in reached_by(settings):
        if each.ok:
            click.echo(str(each))
        else:
            warnings.append(str(each))
    return warnings


def _check_store(settings: Settings, *, offline: bool) -> list[str]:
    address = address_of(settings.store.url)
    shown = without_secrets(settings.store.url)
    if offline:
        click.echo(f"store: {shown}, not tried")
    elif isinstance(address, Memory):
        click.echo("store: memory://, lost when the process ends")
    elif isinstance(address, Restate):
        return _check_cluster(address)
    else:
        click.echo(f"store: {shown}, {_state_of(settings.store.url)}")
    return []


def _check_cluster(address: Restate) -> list[str]:
    from oncekey.stores.restate.checking import look_at
    from oncekey.stores.restate.place import place_of

    seen = asyncio.run(look_at(place_of(address.url)))
    first, *others = seen.found
    click.echo(f"store: {without_secrets(address.url)}, {first}")
    for each in others:
        click.echo(f"store: {each}")
    return [f"store: {each}" for each in seen.warnings]


def _targets_of(settings: Settings) -> Iterator[tuple[str, str]]:
    if settings.app.target:
        yield "app", settings.app.target
    if settings.app.workflows:
        yield "workflows", settings.app.workflows
    for each in settings.routes:
        if each.recover is not None:
            yield "recover", each.recover


def _check_target(name: str, target: str, folder: Path) -> None:
    from oncekey.compose.target import check_target

    check_target(target, folder)
    click.echo(f"{name}: {target}, found")


def _state_of(url: str) -> str:
    from oncekey.compose.tables import tables_of

    version, newest = tables_of(url)
    if version == newest:
        return "reachable, tables up to date"
    if version == 0:
        return "no tables yet: `oncekey serve` or `oncekey migrate` makes them"
    return f"tables at version {version} of {newest}: `oncekey serve` or `oncekey migrate` updates"
