"""`oncekey migrate`: make the tables, or bring them up to date."""

from __future__ import annotations

import click

from oncekey.cli.options import configured
from oncekey.compose.address import Restate, address_of, without_secrets
from oncekey.config import Settings


@click.command()
@configured
def migrate(settings: Settings) -> None:
    """Make the tables of the ledger, or bring them up to date.

    Servers do this when they start; run it first where they may not change tables. Tables of a
    newer OnceKey are refused and left as they are.

    \b
    Examples:
      oncekey migrate
      oncekey migrate --url postgresql://oncekey@db/app
    """
    from oncekey.compose.tables import migrate as run_migrations

    shown = without_secrets(settings.store.url)
    if isinstance(address_of(settings.store.url), Restate):
        click.echo(f"{shown}: nothing to do, Restate has no tables")
        return
    done = run_migrations(settings.store.url)
    if done:
        click.echo(f"{shown}: ran migration {', '.join(map(str, done))}")
    else:
        click.echo(f"{shown}: nothing to do, the tables are up to date")
