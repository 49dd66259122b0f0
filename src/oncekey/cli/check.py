"""`oncekey check`: is the configuration right, and can the store be reached."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from oncekey.cli.options import configured
from oncekey.compose.address import Memory, address_of, without_secrets
from oncekey.config import Settings


@click.command()
@configured
@click.option("--offline", is_flag=True, help="Do not try to reach the store.")
def check(settings: Settings, *, offline: bool) -> None:
    """Validate the configuration and reach the store.

    Every mistake is told, each with its file, its line and a way out. Nothing is changed: a store
    that does not exist yet is not made.

    \b
    Examples:
      oncekey check
      oncekey check --config deploy/oncekey.toml --offline
    """
    click.echo(f"configuration: ok, {_counted(settings)}")
    for name, target in _targets_of(settings):
        _check_target(name, target, settings.folder)
    address = address_of(settings.store.url)
    shown = without_secrets(settings.store.url)
    if offline:
        click.echo(f"store: {shown}, not tried")
    elif isinstance(address, Memory):
        click.echo("store: memory://, lost when the process ends")
    else:
        click.echo(f"store: {shown}, {_state_of(settings.store.url)}")


def _counted(settings: Settings) -> str:
    routes, schedules = len(settings.routes), len(settings.schedules)
    told = f"{routes} route{'' if routes == 1 else 's'}"
    return f"{told}, {schedules} schedule{'' if schedules == 1 else 's'}" if schedules else told


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
