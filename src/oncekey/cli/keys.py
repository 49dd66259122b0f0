"""`oncekey keys`: what has been asked with which key, and what became of it."""

from __future__ import annotations

import sys
from functools import partial
from itertools import islice

import click

from oncekey.cli.audited import audited
from oncekey.cli.failure import Failure
from oncekey.cli.options import configured, opened
from oncekey.cli.output import print_json, print_pairs, print_table
from oncekey.cli.paging import Page, older, paged
from oncekey.cli.records import (
    COLUMNS,
    STATES,
    find_by_id,
    outcome_lines,
    pairs_of,
    plain_of,
    row_of,
    scan,
)
from oncekey.cli.scopes import Whose, scoped
from oncekey.cli.text import escaped
from oncekey.config import Settings
from oncekey.core.ledger import Ledger
from oncekey.core.model import Ref, number_of
from oncekey.core.ports import Found, Query
from oncekey.webhooks.purging import is_held, purge

# More candidates than this help nobody to choose.
_CANDIDATES = 20
# Of an audit entry, in which every character may come out as six.
_LONGEST_FACT = 200


@click.group()
def keys() -> None:
    """Look at keys, and forget them."""


_OLDER = older(
    number_of,
    "an operation id",
    "Only operations older than this one.",
    metavar="OPERATION",
)


@keys.command("list")
@click.option("--state", type=click.Choice(list(STATES)), help="Only keys in this state.")
@click.option("--prefix", metavar="TEXT", help="Only keys that start with this.")
@scoped
@paged(_OLDER)
def list_keys(
    settings: Settings, page: Page, whose: Whose, state: str | None, prefix: str | None
) -> None:
    """List keys, newest first.

    \b
    Examples:
      oncekey keys list --state in-progress
      oncekey keys list --prefix invoice- --limit 10
      oncekey keys list --tenant acme --json
    """
    query = Query(STATES[state] if state else None, prefix or None, before=page.before)
    with opened(settings) as ledger:
        found = list(islice(scan(ledger, whose.narrow(query), whose.has), page.reach))
    page.print(
        "keys",
        found,
        partial(plain_of, whole=False),
        COLUMNS,
        row_of,
        lambda each: each.record.operation_id,
    )


@keys.command("show")
@click.argument("name", metavar="KEY|OPERATION")
@scoped
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the whole body.")
def show_key(settings: Settings, whose: Whose, name: str, *, as_json: bool) -> None:
    """Show one key: its state, attempts and answer.

    Operations are named by their id, which callers see as X-Operation-Id, or by their key. When
    several scopes have the key, they are listed; --endpoint and the other options choose.

    \b
    Examples:
      oncekey keys show op_343c2821b56ac573
      oncekey keys show invoice-42 --endpoint 'POST /invoices'
    """
    with opened(settings) as ledger:
        found = _find(ledger, name, whose)
    if as_json:
        print_json(plain_of(found, whole=True))
        return
    print_pairs(pairs_of(found))
    if found.record.outcome is not None:
        first, *lines = outcome_lines(found.record.outcome)
        click.echo(f"outcome     {first}")
        for line in lines:
            click.echo(f"  {escaped(line)}".rstrip())


@keys.command("purge")
@click.argument("name", metavar="KEY|OPERATION")
@scoped
@configured
@click.option("--force", is_flag=True, help="Purge even while it is running.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def purge_key(settings: Settings, whose: Whose, name: str, *, force: bool, yes: bool) -> None:
    """Forget one key, so that the next request with it runs.

    This is how a stored error is lifted, and how an outcome that nobody knows is decided. A key
    whose operation is running is refused: a retry would run beside it. --force does it anyway;
    what the running one answers is then not kept. With the key of a delivery goes what is
    remembered of its body, so that the provider can send it again.

    \b
    Examples:
      oncekey keys purge op_343c2821b56ac573
      oncekey keys purge invoice-42 --endpoint 'POST /invoices' --yes
    """
    with opened(settings) as ledger:
        found = _find(ledger, name, whose)
        record = found.record
        shown = escaped(f"{record.operation_id} (key {record.ref.key})")
        if is_held(found) and not force:
            raise Failure(f"{shown} is running; wait for it, or purge it with --force")
        if sys.stdin.isatty() and not yes:
            click.confirm(f"Forget {shown}? The next request with this key runs.", abort=True)
        if record.ref not in purge(ledger, found, force=True):
            raise Failure(f"{shown} is gone already")
        namespace, endpoint = record.ref.scope
        tenant = namespace.removeprefix("t-").partition(":")[0]
        facts = {"key": record.ref.key, "namespace": namespace, "endpoint": endpoint}
        shortened = {name: text[:_LONGEST_FACT] for name, text in facts.items()}
        audited(ledger, "key.purge", record.operation_id, tenant=tenant, **shortened)
    click.echo(f"purged {shown}")


def _find(ledger: Ledger, name: str, whose: Whose) -> Found:
    """The one record that is meant; else the failure that says how to name it."""
    found = find_by_id(ledger, name)
    if found is not None and whose.has(found.record):
        return found
    scope = whose.scope
    if scope is not None:
        # There is one at most, and it is not looked for among others.
        found = ledger.look(Ref(scope, name))
        candidates = [] if found is None else [found]
    else:
        same = scan(ledger, whose.narrow(Query(key=name)), whose.has)
        candidates = list(islice(same, _CANDIDATES + 1))
    if len(candidates) == 1:
        # A list has no answers.
        return ledger.look(candidates[0].record.id) or candidates[0]
    if not candidates:
        raise Failure(f"there is no key or operation {name!r}; see `oncekey keys list`")
    print_table(COLUMNS, [row_of(each) for each in candidates[:_CANDIDATES]])
    more = "more than " if len(candidates) > _CANDIDATES else ""
    count = min(len(candidates), _CANDIDATES)
    raise Failure(f"{more}{count} scopes have the key {name!r}; name one by its operation id")
