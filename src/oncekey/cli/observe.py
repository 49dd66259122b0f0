"""`oncekey observe`: the Grafana dashboard and the Prometheus alerts that come with OnceKey."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

import click

from oncekey.cli.failure import Failure

_output = click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write it there, in place of stdout.",
)


@click.group()
def observe() -> None:
    """Get the dashboard and the alerts for the metrics of `oncekey serve`."""


@observe.command("dashboard")
@_output
def print_dashboard(output: Path | None) -> None:
    """Print the dashboard, as JSON for Grafana to import.

    It asks for its data source, and chooses by tenant, project and endpoint.

    \b
    Examples:
      oncekey observe dashboard --output oncekey.json
      oncekey observe dashboard > /var/lib/grafana/dashboards/oncekey.json
    """
    _print("dashboards", "oncekey.json", output)


@observe.command("alerts")
@_output
def print_alerts(output: Path | None) -> None:
    """Print the alert rules, as YAML for the rule_files of Prometheus.

    \b
    Examples:
      oncekey observe alerts --output /etc/prometheus/oncekey.rules.yml
      oncekey observe alerts > oncekey.rules.yml
    """
    _print("alerts", "oncekey.rules.yml", output)


def _print(folder: str, name: str, output: Path | None) -> None:
    text = (files("oncekey.observe") / folder / name).read_text(encoding="utf-8")
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise Failure(f"cannot write {output}: {reason}") from error
    click.echo(f"wrote {output}")
