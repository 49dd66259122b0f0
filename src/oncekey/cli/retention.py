"""`oncekey retention`: how long outcomes are kept, by class."""

from __future__ import annotations

import click

from oncekey.api.admin.shapes import shapes_of_retention
from oncekey.cli.audited import audited
from oncekey.cli.options import configured, opened
from oncekey.cli.output import print_json, print_table
from oncekey.config import Settings
from oncekey.core.retention import check_class, check_seconds, duration_of, seconds_of


@click.group()
def retention() -> None:
    """See and change how long outcomes are kept."""


@retention.command("list")
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_classes(settings: Settings, *, as_json: bool) -> None:
    """List the retention classes.

    A class set with `oncekey retention set` wins over the same class in the file.

    \b
    Examples:
      oncekey retention list
      oncekey retention list --json
    """
    with opened(settings) as ledger:
        shapes = shapes_of_retention(ledger, settings.retention)
    if as_json:
        print_json(shapes)
    else:
        rows = [(each["class"], duration_of(each["seconds"]), each["from"]) for each in shapes]
        print_table(("CLASS", "KEPT", "FROM"), rows)


@retention.command("set")
@click.argument("name", metavar="CLASS")
@click.argument("duration")
@configured
def set_class(settings: Settings, name: str, duration: str) -> None:
    """Change how long outcomes of CLASS are kept.

    Holds in every process at the next heartbeat, without a restart, for outcomes stored from then
    on. DURATION is such as 30m, 24h, 7d or 1d12h.

    \b
    Examples:
      oncekey retention set interactive 48h
      oncekey retention set nightly 3d        a class of your own
    """
    seconds = check_seconds(seconds_of(duration)) / 1000
    check_class(name)
    with opened(settings) as ledger:
        ledger.set_retention(name, seconds)
        audited(ledger, "retention.set", name, seconds=seconds)
    click.echo(f"{name}: outcomes stored from now on are kept {duration_of(seconds)}")
