"""`oncekey apikeys`: who may call the API. A secret is shown once, and only its digest is kept."""

from __future__ import annotations

import asyncio
from functools import partial

import click

from oncekey.api.admin.shapes import (
    facts_of_api_key,
    shape_of_api_key,
    state_of_api_key,
    tenant_of_api_key,
)
from oncekey.cli.audited import audited
from oncekey.cli.failure import Failure
from oncekey.cli.options import configured, opened
from oncekey.cli.output import print_json
from oncekey.cli.paging import Page, older, paged
from oncekey.cli.parameters import Duration, checked_tenant
from oncekey.cli.text import escaped, moment
from oncekey.config import Settings
from oncekey.core.api_keys import ApiKey, is_id
from oncekey.core.callers import Callers
from oncekey.core.scope import PLATFORM_LEVEL, SENTINELS, TENANT_LEVEL
from oncekey.durable.shapes import time_of

_COLUMNS = ("ID", "ROLE", "TENANT", "PROJECT", "SUBJECT", "LABEL", "STATE", "CREATED", "EXPIRES")


@click.group()
def apikeys() -> None:
    """Make, list and revoke API keys."""


@apikeys.command("create")
@click.option("--tenant", callback=checked_tenant, help="Whose work it is for.  [default: default]")
@click.option("--project", help="Whose keys it uses, within the tenant.  [default: the tenant's]")
@click.option("--subject", metavar="TYPE:ID", help="Who calls.  [default: a service of its own]")
@click.option("--label", default="", help="What it is for.")
@click.option("--expires-in", type=Duration(), help="How long it is good.  [default: no end]")
@click.option("--admin", is_flag=True, help="For the API of admins, and nothing else.")
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def create_key(
    *,
    settings: Settings,
    tenant: str | None,
    project: str | None,
    subject: str | None,
    label: str,
    expires_in: float | None,
    admin: bool,
    as_json: bool,
) -> None:
    """Make an API key and show its secret, this once.

    \b
    Examples:
      oncekey apikeys create --label "the shop"
      oncekey apikeys create --tenant acme --expires-in 90d
      oncekey apikeys create --admin --label "on call" --expires-in 1d
    """
    if admin and (tenant or project or subject):
        raise click.UsageError(
            "an admin looks after every tenant; leave --tenant, --project and --subject out"
        )
    level = PLATFORM_LEVEL if admin else TENANT_LEVEL
    with opened(settings) as ledger:
        key, secret = asyncio.run(
            Callers(ledger).create(
                tenant or "default",
                project=project or level,
                subject=subject,
                label=label,
                expires_in=expires_in,
                role="admin" if admin else "caller",
            )
        )
        facts = {**facts_of_api_key(key), "expires_at": time_of(key.expires_at)}
        audited(ledger, "apikey.create", key.id, tenant=tenant_of_api_key(key), **facts)
        now = ledger.clock.now()
    if as_json:
        print_json({**shape_of_api_key(key, now), "secret": secret})
        return
    whose = "for admins" if admin else f"of tenant {key.tenant}"
    click.echo(f"{key.id} {whose}; its secret is shown this once:")
    click.echo(secret)


@apikeys.command("list")
@click.option("--tenant", help="Only of this tenant.")
@paged(older(lambda text: text if is_id(text) else None, "the id of an API key"))
def list_keys(settings: Settings, page: Page, tenant: str | None) -> None:
    """List API keys, newest first, also those that are no longer good.

    \b
    Examples:
      oncekey apikeys list
      oncekey apikeys list --tenant acme --json
    """
    with opened(settings) as ledger:
        found = asyncio.run(Callers(ledger).list(tenant, before=page.before, limit=page.reach))
        now = ledger.clock.now()
    page.print(
        "API keys",
        found,
        partial(shape_of_api_key, now=now),
        _COLUMNS,
        partial(_row_of, now=now),
        lambda key: key.id,
    )


@apikeys.command("revoke")
@click.argument("key_id", metavar="ID")
@configured
def revoke_key(settings: Settings, key_id: str) -> None:
    """Refuse an API key from now on; every process does so within two seconds.

    \b
    Examples:
      oncekey apikeys revoke ak_343c4f9f2b2a889e
    """
    with opened(settings) as ledger:
        revoked = asyncio.run(Callers(ledger).revoke(key_id)) if is_id(key_id) else None
        if revoked is None:
            raise Failure("there is no API key of that id; see `oncekey apikeys list`")
        tenant, facts = tenant_of_api_key(revoked), facts_of_api_key(revoked)
        audited(ledger, "apikey.revoke", key_id, tenant=tenant, **facts)
    since = moment(revoked.revoked_at, zone=True)
    whose = "for admins" if revoked.role == "admin" else f"of tenant {revoked.tenant}"
    click.echo(f"{escaped(key_id)} {whose}: revoked since {since}")


def _row_of(key: ApiKey, now: int) -> tuple[str, ...]:
    return (
        key.id,
        key.role,
        tenant_of_api_key(key) or "",
        "" if key.project in SENTINELS else key.project,
        key.subject,
        key.label,
        state_of_api_key(key, now),
        moment(key.created_at),
        moment(key.expires_at),
    )
