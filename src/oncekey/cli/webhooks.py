"""`oncekey webhooks`: where providers deliver to. A secret that is made here is shown once."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import TYPE_CHECKING, Literal

import click

from oncekey.cli.audited import audited
from oncekey.cli.failure import Failure
from oncekey.cli.options import configured
from oncekey.cli.output import print_json
from oncekey.cli.paging import Page, older, paged
from oncekey.cli.parameters import Overlap, for_tenant, limited
from oncekey.cli.webhook_looking import look, reseal
from oncekey.cli.webhook_means import checked_id, means_of, secret_of, then_of
from oncekey.cli.webhook_sending import send_delivery
from oncekey.config import Settings
from oncekey.core.deliveries import delivery_number
from oncekey.core.retention import duration_of
from oncekey.core.scope import TENANT_LEVEL

if TYPE_CHECKING:
    from oncekey.webhooks.sources import Source

_THEN = "event:provider"


@click.group()
def webhooks() -> None:
    """Make webhooks for providers to deliver to, look at them, and try them."""


@webhooks.command("create")
@click.option("--provider", required=True, help="Who delivers: stripe, github, standard, …")
@click.option("--then", default=_THEN, show_default=True, help="What follows a delivery.")
@click.option("--secret", help="The provider's, - reads stdin.  [default: made, and shown once]")
@click.option("--label", default="", help="What it is for.")
@click.option(
    "--repeats",
    type=click.Choice(["refuse", "allow"]),
    default="refuse",
    show_default=True,
    help="Whether a body may come again under another identifier that is not signed.",
)
@for_tenant
@click.option("--project", help="Whose it is, within the tenant.  [default: the tenant's]")
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def create_webhook(
    *,
    settings: Settings,
    provider: str,
    then: str,
    secret: str | None,
    label: str,
    repeats: Literal["refuse", "allow"],
    tenant: str,
    project: str | None,
    as_json: bool,
) -> None:
    """Make a webhook, and show where its provider is to deliver.

    --then is one of forward:/path, event:CEL, resolve:CEL and workflow:NAME. CEL sees the body,
    the headers, the identifier and the provider of a delivery.

    \b
    Examples:
      oncekey webhooks create --provider stripe \\
        --then 'resolve:"stripe:" + body.data.object.id'
      oncekey webhooks create --provider github --then workflow:build --secret -
      oncekey webhooks create --provider shopify --then forward:/orders --tenant acme
    """
    follows, place = then_of(then, settings), (tenant, project or TENANT_LEVEL, provider)
    with means_of(settings) as means:
        given, made = secret_of(secret, means.provider(provider)), None

        async def create() -> Source:
            nonlocal made
            if given is None and not await means.sources.has_secret(*place):
                made = means.provider(provider).new_secret()
            return await means.sources.create(
                *place, follows, secret=given or made, label=label, repeats=repeats
            )

        source = asyncio.run(create())
        facts = {"project": source.project, "provider": provider, "then": str(follows)}
        audited(means.ledger, "webhook.create", source.id, tenant=tenant, label=label, **facts)
    _tell_new(source, made, settings, as_json=as_json)


@webhooks.command("list")
@click.option("--tenant", help="Only of this tenant.")
@paged(
    click.option(
        "--before", metavar="ID", callback=checked_id, help="Only those older than this one."
    )
)
def list_webhooks(settings: Settings, page: Page, tenant: str | None) -> None:
    """List webhooks, newest first; never their secrets.

    \b
    Examples:
      oncekey webhooks list
      oncekey webhooks list --tenant acme --json
    """
    from oncekey.cli.webhook_shapes import COLUMNS, plain_of, row_of

    with means_of(settings) as means:
        found = asyncio.run(means.sources.list(tenant, before=page.before, limit=page.reach))
    page.print(
        "webhooks",
        found,
        partial(plain_of, settings=settings),
        COLUMNS,
        row_of,
        lambda source: source.id,
    )


@webhooks.command("show")
@click.argument("webhook_id", metavar="ID", callback=checked_id)
@limited
@older(delivery_number, "the id of a delivery", "Only deliveries older than this one.")
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_webhook(
    *, settings: Settings, webhook_id: str, limit: int, before: int | None, as_json: bool
) -> None:
    """Show one webhook, and what became of its deliveries, newest first.

    Of the secrets there is only since when and until when each is good.

    \b
    Examples:
      oncekey webhooks show wh_k3v5yd7wq2mz4bxr6nt7hjc3ap5s2e
      oncekey webhooks show wh_k3v5yd7wq2mz4bxr6nt7hjc3ap5s2e --limit 5 --json
    """
    with means_of(settings) as means:
        shown = asyncio.run(look(means, webhook_id, before, limit))
    if as_json:
        print_json(shown.plain(settings))
    else:
        shown.print(settings)


@webhooks.command("rotate")
@click.argument("webhook_id", metavar="ID", callback=checked_id)
@click.option("--secret", help="The new one, - reads stdin.  [default: made, and shown once]")
@click.option(
    "--overlap",
    type=Overlap(),
    default="1d",
    show_default=True,
    help="How long the old one is good.",
)
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def rotate_secret(
    *, settings: Settings, webhook_id: str, secret: str | None, overlap: float, as_json: bool
) -> None:
    """Give a webhook a new secret; the old one stays good for a while.

    Either one is then accepted, so nothing is lost while the provider is told of the new one.

    \b
    Examples:
      oncekey webhooks rotate wh_k3v5yd7wq2mz4bxr6nt7hjc3ap5s2e
      oncekey webhooks rotate wh_k3v5yd7wq2mz4bxr6nt7hjc3ap5s2e --secret - --overlap 0s
    """
    with means_of(settings) as means:
        source = asyncio.run(means.source(webhook_id))
        provider = means.provider(source.provider)
        given = secret_of(secret, provider)
        made = provider.new_secret() if given is None else None
        asyncio.run(means.sources.rotate(webhook_id, given or made or "", overlap=overlap))
        audited(means.ledger, "webhook.rotate", webhook_id, tenant=source.tenant, overlap=overlap)
    if as_json:
        print_json(
            {"id": webhook_id, "overlap_seconds": overlap, **({"secret": made} if made else {})}
        )
        return
    ends = f"in {duration_of(overlap)}" if overlap else "now"
    click.echo(f"{webhook_id} has a new secret; the old one ends {ends}")
    _tell_secret(made)


@webhooks.command("delete")
@click.argument("webhook_id", metavar="ID", callback=checked_id)
@click.option("--yes", is_flag=True, help="Do not ask.")
@configured
def delete_webhook(settings: Settings, webhook_id: str, *, yes: bool) -> None:
    """Delete a webhook with its secrets; every process refuses its deliveries within two seconds.

    \b
    Examples:
      oncekey webhooks delete wh_k3v5yd7wq2mz4bxr6nt7hjc3ap5s2e --yes
    """
    with means_of(settings) as means:
        source = asyncio.run(means.source(webhook_id))
        if sys.stdin.isatty() and not yes:
            click.confirm(f"Delete {webhook_id} of {source.provider} for good?", abort=True)
        if not asyncio.run(means.sources.delete(webhook_id)):
            raise Failure(f"{webhook_id} is gone already")
        audited(
            means.ledger, "webhook.delete", webhook_id, tenant=source.tenant,
            project=source.project, provider=source.provider,
        )  # fmt: skip
    click.echo(f"deleted {webhook_id} of {source.provider}")


@webhooks.command("key")
def make_key() -> None:
    """Print a new key, for secrets to be sealed with.

    It belongs into ONCEKEY_WEBHOOK_KEY, or into a file with mode 600 that webhooks.key_file names,
    the same for every process. A new one goes in front of those there are, with a comma between;
    `oncekey webhooks reseal` then makes the older ones needless.

    \b
    Examples:
      export ONCEKEY_WEBHOOK_KEY="$(oncekey webhooks key)"
      (umask 077; oncekey webhooks key > webhooks.key)
    """
    from oncekey.webhooks.keys import new_key

    click.echo(new_key())


@webhooks.command("reseal")
@configured
def reseal_secrets(settings: Settings) -> None:
    """Seal every secret anew, with the newest key, so that the older keys can go.

    \b
    Examples:
      oncekey webhooks reseal
    """
    with means_of(settings) as means:
        count = asyncio.run(reseal(means))
        audited(means.ledger, "webhook.reseal", "all", webhooks=count)
    click.echo(f"sealed the secrets of {count} webhook{'' if count == 1 else 's'} anew")


webhooks.add_command(send_delivery)


def _tell_new(source: Source, made: str | None, settings: Settings, *, as_json: bool) -> None:
    from oncekey.cli.webhook_shapes import plain_of, url_of

    if as_json:
        print_json(plain_of(source, settings) | ({"secret": made} if made else {}))
        return
    click.echo(f"{source.id} of tenant {source.tenant}: {source.provider}, then {source.then}")
    click.echo(f"deliveries go to {url_of(source, settings)}")
    _tell_secret(made)


def _tell_secret(made: str | None) -> None:
    if made is not None:
        click.echo("its secret is shown this once:")
        click.echo(made.rstrip("\n"))
