"""`oncekey apikeys`: who may call the API. A secret is shown once, and only its digest is kept."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from oncekey.cli.audited import audited
from oncekey.cli.failure import Failure
from oncekey.cli.options import configured, opened
from oncekey.cli.output import print_json, print_table
from oncekey.cli.paging import next_command
from oncekey.cli.parameters import Duration, checked_tenant, limited
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
        audited(ledger, "apikey.create", key.id, tenant=_tenant_of(key), **_facts_of(key))
        now = ledger.clock.now()
    if as_json:
        print_json({**_plain_of(key, now), "secret": secret})
        return
    whose = "for admins" if admin else f"of tenant {key.tenant}"
    click.echo(f"{key.id} {whose}; its secret is shown this once:")
    click.echo(secret)


@apikeys.command("list")
@click.option("--tenant", help="Only of this tenant.")
@limited
@click.option("--before", metavar="ID", help="Only those older than this one.")
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def list_keys(
    ctx: click.Context,
    *,
    settings: Settings,
    tenant: str | None,
    limit: int,
    before: str | None,
    as_json: bool,
) -> None:
    """List API keys, newest first, also those that are no longer good.

    \b
    Examples:
      oncekey apikeys list
      oncekey apikeys list --tenant acme --json
    """
    if before is not None and not is_id(before):
        raise click.BadParameter(f"{before!r} is not the id of an API key", param_hint="--before")
    with opened(settings) as ledger:
        found = asyncio.run(Callers(ledger).list(tenant, before=before, limit=limit + 1))
        now = ledger.clock.now()
    page = found[:limit]
    if as_json:
        print_json([_plain_of(each, now) for each in page])
    elif not page:
        click.echo("no API keys")
    else:
        print_table(_COLUMNS, [_row_of(each, now) for each in page])
        if len(found) > limit:
            click.echo(f"more: {next_command(ctx, before=page[-1].id)}")


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
        audited(ledger, "apikey.revoke", key_id, tenant=_tenant_of(revoked), **_facts_of(revoked))
    since = moment(revoked.revoked_at, zone=True)
    whose = "for admins" if revoked.role == "admin" else f"of tenant {revoked.tenant}"
    click.echo(f"{escaped(key_id)} {whose}: revoked since {since}")


def _tenant_of(key: ApiKey) -> str | None:
    """None for admins, who look after all of them."""
    return None if key.role == "admin" else key.tenant


def _facts_of(key: ApiKey) -> dict[str, str]:
    return {"role": key.role, "subject": key.subject, "label": key.label}


def _state_of(key: ApiKey, now: int) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "good" if key.is_good(now) else "expired"


def _row_of(key: ApiKey, now: int) -> tuple[str, ...]:
    return (
        key.id,
        key.role,
        _tenant_of(key) or "",
        "" if key.project in SENTINELS else key.project,
        key.subject,
        key.label,
        _state_of(key, now),
        moment(key.created_at),
        moment(key.expires_at),
    )


def _plain_of(key: ApiKey, now: int) -> dict[str, Any]:
    return {
        "id": key.id,
        "role": key.role,
        "tenant": key.tenant,
        "project": key.project,
        "subject": key.subject,
        "label": key.label,
        "state": _state_of(key, now),
        "created_at": time_of(key.created_at),
        "expires_at": time_of(key.expires_at),
        "revoked_at": time_of(key.revoked_at),
    }
