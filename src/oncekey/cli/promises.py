"""`oncekey promises`: what is waited for from outside, and settling it by hand."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Literal

import click

from oncekey.cli.audited import audited
from oncekey.cli.engine import engaged
from oncekey.cli.executions import failure_in
from oncekey.cli.failure import way_out
from oncekey.cli.options import Command, configured, opened
from oncekey.cli.output import print_pairs, print_shape
from oncekey.cli.paging import Page, older, paged
from oncekey.cli.parameters import Duration, Json, for_tenant
from oncekey.cli.text import moment, shortened
from oncekey.config import Settings
from oncekey.core.errors import KeyReused, NotFound
from oncekey.core.execution import Promise, PromiseKind, PromiseState, promise_place_of
from oncekey.core.work import ListPromises
from oncekey.durable.address import address_of
from oncekey.durable.engine import Engine, SettleAnswer
from oncekey.durable.shapes import shape_of_promise, shape_of_settle

_STATES = {each.name.lower(): each for each in PromiseState}
_VERBS = {PromiseState.RESOLVED: "resolve", PromiseState.REJECTED: "reject"}
_SEE_LIST = "see `oncekey promises list`"
_COLUMNS = ("ID", "STATE", "KEY", "TIMEOUT", "CREATED", "SETTLED BY")


@click.group()
def promises() -> None:
    """Look at promises, resolve and reject them."""


def _number_of(cursor: str) -> int | None:
    """A page ends with the number of a promise, whatever its name is."""
    place = promise_place_of(f"{cursor}:x")
    return None if place is None else place.id


_OLDER = older(
    _number_of,
    "of a page; take the one the page above ends with",
    "Only those older than the page above.",
    metavar="PROMISE",
)


@promises.command("list")
@click.option("--state", type=click.Choice(list(_STATES)), help="Only in this state.")
@for_tenant
@paged(_OLDER)
def list_promises(settings: Settings, page: Page, tenant: str, state: str | None) -> None:
    """List promises, newest first.

    \b
    Examples:
      oncekey promises list --state pending
      oncekey promises list --tenant acme --json
    """
    query = ListPromises(
        tenant,
        _STATES[state] if state else None,
        PromiseKind.PROMISE,
        before=page.before,
        limit=page.reach,
    )
    with opened(settings) as ledger:
        found = engaged(ledger, lambda engine: engine.promises(query))
    page.print(
        "promises",
        found,
        shape_of_promise,
        _COLUMNS,
        _row_of,
        lambda promise: f"pr_{promise.id:016x}",
    )


@promises.command("show")
@click.argument("address", metavar="id:ID|key:KEY|TOKEN")
@click.option("--wait", type=Duration(), help="Wait until it is settled, so long at most.")
@for_tenant
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_promise(
    settings: Settings, tenant: str, address: str, wait: float | None, *, as_json: bool
) -> None:
    """Show one promise: its state, its value, and who settled it.

    \b
    Examples:
      oncekey promises show key:stripe:ch_42
      oncekey promises show id:wf_343c4f9f2b2a889e:payment --wait 30s
    """
    place = address_of(address)

    def look(engine: Engine) -> Coroutine[Any, Any, Promise]:
        if wait is None:
            return engine.promise(tenant, place)
        return engine.wait_promise(tenant, place, wait)

    with opened(settings) as ledger, way_out(NotFound, _SEE_LIST):
        promise = engaged(ledger, look)
    if as_json:
        print_shape(shape_of_promise(promise))
    else:
        print_pairs(_pairs_of(promise))


def _settling(command: Command) -> Command:
    """Give `command` the options of a request that settles a promise."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        configured,
        for_tenant,
        click.option(
            "--park-ttl", type=Duration(), default="24h", show_default=True, help="For how long."
        ),
        click.option("--park", is_flag=True, help="Keep it for a key that no promise has yet."),
        click.option(
            "--request-key", metavar="KEY", help="Of this request, so that it can be repeated."
        ),
    ):
        command = option(command)
    return command


@promises.command("resolve")
@click.argument("address", metavar="id:ID|key:KEY|TOKEN")
@click.option("--value", type=Json(), default="null", help="Its value; - reads stdin.")
@_settling
def resolve_promise(settings: Settings, value: bytes, **options: Any) -> None:
    """Give a promise its value; the workflow that waits for it goes on.

    The first one counts: what is settled already stays as it is, and that is told.

    \b
    Examples:
      oncekey promises resolve key:stripe:ch_42 --value '{"paid": true}'
      oncekey promises resolve id:wf_343c4f9f2b2a889e:approval --request-key ticket-7
    """
    _settle(settings, PromiseState.RESOLVED, value, **options)


@promises.command("reject")
@click.argument("address", metavar="id:ID|key:KEY|TOKEN")
@click.option("--error", type=Json(), default="null", help="The reason; - reads stdin.")
@_settling
def reject_promise(settings: Settings, error: bytes, **options: Any) -> None:
    """Give a promise an error; the workflow that waits for it gets PromiseRejected.

    \b
    Examples:
      oncekey promises reject key:stripe:ch_42 --error '{"message": "card declined"}'
    """
    _settle(settings, PromiseState.REJECTED, error, **options)


def _settle(
    settings: Settings,
    state: Literal[PromiseState.RESOLVED, PromiseState.REJECTED],
    body: bytes,
    *,
    tenant: str,
    address: str,
    request_key: str | None,
    park: bool,
    park_ttl: float,
    as_json: bool,
) -> None:
    place = address_of(address)
    hint = _SEE_LIST if park else f"{_SEE_LIST}, or keep it for a key to come with --park"
    with (
        opened(settings) as ledger,
        way_out(NotFound, hint),
        way_out(KeyReused, "use a new one for something new"),
    ):
        answer = engaged(
            ledger,
            lambda engine: engine.settle(
                tenant,
                place,
                state,
                body,
                request_key=request_key,
                park=park,
                park_ttl=park_ttl,
            ),
        )
        if not answer.already_resolved:
            # Never the address itself: it may be a token.
            target = answer.promise.public_id if answer.promise else "a promise to come"
            audited(ledger, f"promise.{_VERBS[state]}", target, tenant=tenant)
    if as_json:
        print_shape(shape_of_settle(answer))
    else:
        click.echo(_told(answer))


def _told(answer: SettleAnswer) -> str:
    promise = answer.promise
    if promise is None:
        until = moment(answer.parked_until, zone=True)
        return f"parked until {until}: no promise has this key yet"
    state = promise.state.name.lower()
    if answer.already_resolved:
        by = f", by {promise.settled_by}" if promise.settled_by else ""
        return f"{promise.public_id}: had been {state} already{by}; it stays as it is"
    return f"{promise.public_id}: {state}"


def _row_of(promise: Promise) -> tuple[str, ...]:
    return (
        promise.public_id,
        promise.state.name.lower(),
        promise.key or "",
        moment(promise.due_at),
        moment(promise.created_at),
        promise.settled_by or "",
    )


def _pairs_of(promise: Promise) -> list[tuple[str, str]]:
    return [
        ("id", promise.public_id),
        ("state", promise.state.name.lower()),
        ("key", promise.key or ""),
        ("key expires", moment(promise.key_expires_at, zone=True)),
        ("times out", moment(promise.due_at, zone=True)),
        *_body_of(promise),
        ("settled by", promise.settled_by or ""),
        ("created", moment(promise.created_at, zone=True)),
        ("settled", moment(promise.settled_at, zone=True)),
    ]


def _body_of(promise: Promise) -> list[tuple[str, str]]:
    match promise.state:
        case PromiseState.RESOLVED:
            return [("value", shortened(promise.body or b"null"))]
        case PromiseState.REJECTED:
            return [("error", failure_in(promise.body))]
        case _:
            return []
