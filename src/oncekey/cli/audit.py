"""`oncekey audit`: what operators did, newest first."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import click

from oncekey.api.admin.shapes import shape_of_audit_entry
from oncekey.cli.options import opened
from oncekey.cli.paging import Page, older, paged
from oncekey.cli.text import moment
from oncekey.config import Settings
from oncekey.core.audit import Audit, AuditEntry, entry_number

_COLUMNS = ("AT", "ACTOR", "ACTION", "TARGET", "TENANT", "DETAILS")


@click.command()
@click.option("--tenant", help="Only what concerns this tenant.")
@paged(older(entry_number, "the id of an entry", "Only entries older than this one."))
def audit(settings: Settings, page: Page, tenant: str | None) -> None:
    """Show what operators changed: who, what and when, newest first.

    Commands are here as cli: and an account, admins of the API as admin: and the id of their key.

    \b
    Examples:
      oncekey audit
      oncekey audit --tenant acme --json
    """
    with opened(settings) as ledger:
        found = asyncio.run(Audit(ledger).list(tenant, before=page.before, limit=page.reach))
    page.print(
        "entries",
        found,
        shape_of_audit_entry,
        _COLUMNS,
        _row_of,
        lambda entry: entry.public_id,
    )


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
