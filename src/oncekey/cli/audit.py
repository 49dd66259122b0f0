"""`oncekey audit`: what operators did, newest first."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import click

from oncekey.cli.options import configured, opened
from oncekey.cli.output import print_json, print_table
from oncekey.cli.paging import next_command
from oncekey.cli.parameters import limited
from oncekey.cli.text import moment
from oncekey.config import Settings
from oncekey.core.audit import Audit, AuditEntry, entry_number
from oncekey.durable.shapes import time_of

_COLUMNS = ("AT", "ACTOR", "ACTION", "TARGET", "TENANT", "DETAILS")


@click.command()
@click.option("--tenant", help="Only what concerns this tenant.")
@limited
@click.option("--before", metavar="ID", help="Only entries older than this one.")
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def audit(
    ctx: click.Context,
    *,
    settings: Settings,
    tenant: str | None,
    limit: int,
    before: str | None,
    as_json: bool,
) -> None:
    """Show what operators changed: who, what and when, newest first.

    Commands are here as cli: and an account, admins of the API as admin: and the id of their key.

    \b
    Examples:
      oncekey audit
      oncekey audit --tenant acme --json
    """
    number = None if before is None else entry_number(before)
    if before is not None and number is None:
        raise click.BadParameter(f"{before!r} is not the id of an entry", param_hint="--before")
    with opened(settings) as ledger:
        found = asyncio.run(Audit(ledger).list(tenant, before=number, limit=limit + 1))
    page = found[:limit]
    if as_json:
        print_json([_plain_of(each) for each in page])
    elif not page:
        click.echo("no entries")
    else:
        print_table(_COLUMNS, [_row_of(each) for each in page])
        if len(found) > limit:
            click.echo(f"more: {next_command(ctx, before=page[-1].public_id)}")


def _row_of(entry: AuditEntry) -> tuple[str, ...]:
    told = [f"{name}={_shown(value)}" for name, value in entry.facts.items()]
    return (
        moment(entry.at),
        entry.actor,
        entry.action,
        entry.target,
        entry.tenant or "",
        " ".join(told),
    )


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _plain_of(entry: AuditEntry) -> dict[str, Any]:
    return {
        "id": entry.public_id,
        "at": time_of(entry.at),
        "actor": entry.actor,
        "action": entry.action,
        "target": entry.target,
        "tenant": entry.tenant,
        "details": entry.facts,
    }
