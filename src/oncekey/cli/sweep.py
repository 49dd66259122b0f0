"""`oncekey sweep`: delete what is expired, now."""

from __future__ import annotations

import sys

import click

from oncekey.cli.options import configured, opened
from oncekey.cli.output import console, print_json
from oncekey.config import Settings
from oncekey.core.ledger import Ledger


@click.command()
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def sweep(settings: Settings, *, as_json: bool) -> None:
    """Delete every expired record.

    Servers sweep by themselves from time to time, and an expired key is new whether it has been
    swept or not; this only frees the space, in small batches that hold nobody up.

    \b
    Examples:
      oncekey sweep
      oncekey sweep --config /etc/oncekey.toml
    """
    with opened(settings) as ledger:
        swept = _with_progress(ledger) if sys.stdout.isatty() and not as_json else ledger.sweep()
    if as_json:
        print_json({"swept": swept})
    else:
        click.echo(f"swept {swept} expired record{'' if swept == 1 else 's'}")


def _with_progress(ledger: Ledger) -> int:
    from rich.progress import Progress

    with Progress(console=console(), transient=True) as progress:
        task = progress.add_task("sweeping", total=None)
        return ledger.sweep(lambda done, total: progress.update(task, completed=done, total=total))
