"""`oncekey events`: tell workflows what has happened, and look at what was told."""

from __future__ import annotations

import click

from oncekey.cli.audited import audited
from oncekey.cli.engine import engaged
from oncekey.cli.failure import way_out
from oncekey.cli.options import configured, opened
from oncekey.cli.output import print_shape, print_table
from oncekey.cli.parameters import Json, for_tenant, limited
from oncekey.cli.text import moment, shortened
from oncekey.config import Settings
from oncekey.core.errors import KeyReused
from oncekey.core.work import Event, event_id_of
from oncekey.durable.shapes import shape_of_event, shape_of_publish

_COLUMNS = ("ID", "KEY", "DATA", "CREATED", "EXPIRES")
_LONGEST_DATA = 80


@click.group()
def events() -> None:
    """Publish events, and look at recent ones."""


@events.command("publish")
@click.argument("key")
@click.option("--data", type=Json(), default="null", help="What is known of it; - reads stdin.")
@click.option(
    "--header", "headers", metavar="NAME=VALUE", multiple=True, help="For conditions; repeatable."
)
@click.option(
    "--idempotency-key", metavar="KEY", help="Of this event, so that it can be published again."
)
@for_tenant
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def publish_event(
    *,
    settings: Settings,
    tenant: str,
    key: str,
    data: bytes,
    headers: tuple[str, ...],
    idempotency_key: str | None,
    as_json: bool,
) -> None:
    """Publish an event: every workflow that waits for one like it goes on.

    \b
    Examples:
      oncekey events publish shipment:created --data '{"order_id": 42}'
      oncekey events publish stock:low --data - --idempotency-key evt-7 < stock.json
    """
    named = _headers_of(headers)
    with opened(settings) as ledger, way_out(KeyReused, "use a new key for a new event"):
        answer = engaged(
            ledger,
            lambda engine: engine.publish(
                tenant, key, data, headers=named, idempotency_key=idempotency_key
            ),
        )
        if answer.key_new or not answer.key_used:
            audited(ledger, "event.publish", answer.event_id, tenant=tenant, key=key)
    if as_json:
        print_shape(shape_of_publish(answer))
        return
    again = "; it was published before with this key" if answer.key_used > answer.key_new else ""
    count = "1 wait" if answer.matched == 1 else f"{answer.matched} waits"
    click.echo(f"{answer.event_id}: fitted {count}{again}")


@events.command("list")
@click.option("--key", metavar="KEY", help="Only of this key.")
@for_tenant
@limited
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_events(
    *, settings: Settings, tenant: str, key: str | None, limit: int, as_json: bool
) -> None:
    """List the events that are kept still; that is a day.

    \b
    Examples:
      oncekey events list --key shipment:created
      oncekey events list --tenant acme --json
    """
    with opened(settings) as ledger:
        found = engaged(ledger, lambda engine: engine.events(tenant, key, limit))
    if as_json:
        print_shape([shape_of_event(each) for each in found])
    elif not found:
        click.echo("no events")
    else:
        print_table(_COLUMNS, [_row_of(each) for each in found])


def _headers_of(given: tuple[str, ...]) -> dict[str, str]:
    headers = {}
    for each in given:
        name, separator, value = each.partition("=")
        if not separator or not name:
            raise click.BadParameter(f"{each!r} is not NAME=VALUE", param_hint="--header")
        headers[name] = value
    return headers


def _row_of(event: Event) -> tuple[str, ...]:
    return (
        event_id_of(event.id),
        event.topic,
        shortened(event.data, _LONGEST_DATA),
        moment(event.created_at),
        moment(event.expires_at),
    )
