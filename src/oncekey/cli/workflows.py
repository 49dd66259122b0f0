"""`oncekey workflows`: what runs, what it has done and waits for; start, cancel, resume, fork."""

from __future__ import annotations

import difflib
from typing import Literal

import click

from oncekey.cli.audited import audited
from oncekey.cli.engine import engaged
from oncekey.cli.executions import (
    COLUMNS,
    STEPS,
    WAITS,
    Story,
    pairs_of,
    row_of,
    shape_of_story,
    step_row_of,
    story_of,
    wait_row_of,
)
from oncekey.cli.failure import Failure, way_out
from oncekey.cli.options import configured, opened
from oncekey.cli.output import print_pairs, print_shape, print_table
from oncekey.cli.paging import Page, older, paged
from oncekey.cli.parameters import Duration, Json, for_tenant, request_key_of
from oncekey.config import Settings
from oncekey.core.errors import KeyReused, NameUnknown, NotFound
from oncekey.core.execution import Sort, Status, execution_number_of
from oncekey.core.ledger import Ledger
from oncekey.core.steps import Steps
from oncekey.core.work import Action, Known, ListExecutions
from oncekey.durable.engine import Engine
from oncekey.durable.shapes import shape_of_control, shape_of_execution

_STATUSES = {each.name.lower(): each for each in Status}
_SORTS = {each.name.lower(): each for each in Sort}
_SEE_LIST = "see `oncekey workflows list`, and --tenant for another tenant's"


@click.group()
def workflows() -> None:
    """Look at workflows and tasks, start and control them."""


@workflows.command("list")
@click.option("--status", type=click.Choice(list(_STATUSES)), help="Only in this status.")
@click.option("--name", metavar="NAME", help="Only of this name.")
@click.option("--kind", type=click.Choice(list(_SORTS)), help="Only workflows, or only tasks.")
@for_tenant
@paged(older(execution_number_of, "the id of a workflow or a task"))
def list_workflows(
    settings: Settings,
    page: Page,
    tenant: str,
    status: str | None,
    name: str | None,
    kind: str | None,
) -> None:
    """List workflows and tasks, newest first.

    \b
    Examples:
      oncekey workflows list --status waiting
      oncekey workflows list --name process_order --limit 10
      oncekey workflows list --tenant acme --json
    """
    query = ListExecutions(
        tenant,
        _STATUSES[status] if status else None,
        name,
        _SORTS[kind] if kind else None,
        None if page.before is None else page.before[1],
        page.reach,
    )
    with opened(settings) as ledger:
        found = engaged(ledger, lambda engine: engine.executions(query))
    page.print(
        "workflows",
        found,
        shape_of_execution,
        COLUMNS,
        row_of,
        lambda execution: execution.public_id,
    )


@workflows.command("show")
@click.argument("execution_id", metavar="ID")
@click.option("--wait", type=Duration(), help="Wait for its end first, so long at most.")
@for_tenant
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every value whole.")
def show_workflow(
    settings: Settings, tenant: str, execution_id: str, wait: float | None, *, as_json: bool
) -> None:
    """Show one workflow or task: its journal, and what it waits for now.

    \b
    Examples:
      oncekey workflows show wf_343c4f9f2b2a889e
      oncekey workflows show wf_343c4f9f2b2a889e --wait 30s
      oncekey workflows show tk_343c4f9f2b2a88a0 --json
    """

    async def look(engine: Engine) -> Story:
        if wait is None:
            found = await engine.execution(tenant, execution_id)
        else:
            found = await engine.wait(tenant, execution_id, wait)
        return await story_of(engine, tenant, found)

    with opened(settings) as ledger, way_out(NotFound, _SEE_LIST):
        story = engaged(ledger, look)
    if as_json:
        print_shape(shape_of_story(story))
        return
    print_pairs(pairs_of(story.execution))
    if story.entries:
        click.echo()
        print_table(STEPS, [step_row_of(*each) for each in enumerate(story.entries, 1)])
    if story.waits:
        click.echo()
        print_table(WAITS, [wait_row_of(each) for each in story.waits])


@workflows.command("start")
@click.argument("name")
@click.option("--input", "given", type=Json(), default="null", help="What it gets; - reads stdin.")
@click.option("--key", metavar="KEY", help="Start it once for this key, however often this is run.")
@click.option("--task", is_flag=True, help="NAME is a task.")
@click.option(
    "--on-failed",
    type=click.Choice(["keep", "free"]),
    default="keep",
    show_default=True,
    help="Whether one that fails, or is cancelled, gives its key back.",
)
@for_tenant
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def start_workflow(
    *,
    settings: Settings,
    tenant: str,
    name: str,
    given: bytes,
    key: str | None,
    task: bool,
    on_failed: Literal["keep", "free"],
    as_json: bool,
) -> None:
    """Start a workflow or a task.

    The processes that serve its code run it. With a key that was used before, nothing is started:
    the one that has the key is shown as it is now.

    \b
    Examples:
      oncekey workflows start process_order --input '{"id": 42}' --key order:42
      oncekey workflows start send_receipt --task --input - < receipt.json
    """
    sort = Sort.TASK if task else Sort.WORKFLOW
    with opened(settings) as ledger, way_out(KeyReused, "use a new key for something new"):
        try:
            execution, created = engaged(
                ledger,
                lambda engine: engine.start(
                    tenant, sort, name, given, key=key, on_failed=on_failed
                ),
            )
        except NameUnknown as error:
            raise Failure(f"{error}; {_known_instead(ledger, sort, name)}") from error
        if created:
            facts = {"name": name, "key": key}
            audited(ledger, "workflow.start", execution.public_id, tenant=tenant, **facts)
    if as_json:
        print_shape(shape_of_execution(execution))
    elif created:
        click.echo(f"started {execution.public_id}")
    else:
        status = execution.status.name.lower()
        click.echo(f"{execution.public_id} has this key already; it is {status}")


@workflows.command("cancel")
@click.argument("execution_id", metavar="ID")
@click.option("--request-key", metavar="KEY", help="Of this request; made up when left out.")
@for_tenant
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def cancel_workflow(
    *, settings: Settings, tenant: str, execution_id: str, request_key: str | None, as_json: bool
) -> None:
    """End a workflow or a task for good.

    What it waits for is cancelled with it. A step that is being done at this moment may still
    have its effect; its result is not kept.

    \b
    Examples:
      oncekey workflows cancel wf_343c4f9f2b2a889e
      oncekey workflows cancel wf_343c4f9f2b2a889e --request-key ticket-7
    """
    _control(settings, tenant, "cancel", execution_id, request_key, None, as_json=as_json)


@workflows.command("resume")
@click.argument("execution_id", metavar="ID")
@click.option("--request-key", metavar="KEY", help="Of this request; made up when left out.")
@for_tenant
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def resume_workflow(
    *, settings: Settings, tenant: str, execution_id: str, request_key: str | None, as_json: bool
) -> None:
    """Let a paused workflow or task go on, with all its attempts again.

    \b
    Examples:
      oncekey workflows resume wf_343c4f9f2b2a889e
    """
    _control(settings, tenant, "resume", execution_id, request_key, None, as_json=as_json)


@workflows.command("fork")
@click.argument("execution_id", metavar="ID")
@click.option(
    "--from-step",
    type=click.IntRange(1),
    required=True,
    metavar="STEP",
    help="The first step that is done anew, by its number in the journal.",
)
@click.option("--request-key", metavar="KEY", help="Of this request; made up when left out.")
@for_tenant
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def fork_workflow(
    *,
    settings: Settings,
    tenant: str,
    execution_id: str,
    from_step: int,
    request_key: str | None,
    as_json: bool,
) -> None:
    """Start a new workflow with what another did before one of its steps.

    The first one stays as it is. `oncekey workflows show` numbers the steps.

    \b
    Examples:
      oncekey workflows fork wf_343c4f9f2b2a889e --from-step 3
    """
    _control(settings, tenant, "fork", execution_id, request_key, from_step, as_json=as_json)


def _control(
    settings: Settings,
    tenant: str,
    action: Action,
    execution_id: str,
    request_key: str | None,
    from_step: int | None,
    *,
    as_json: bool,
) -> None:
    with opened(settings) as ledger, way_out(NotFound, _SEE_LIST):
        key = request_key_of(request_key)
        answer = engaged(
            ledger,
            lambda engine: engine.control(tenant, action, execution_id, key, from_step=from_step),
        )
        if not answer.replayed:
            audited(ledger, f"workflow.{action}", execution_id, tenant=tenant, from_step=from_step)
    if as_json:
        print_shape(shape_of_control(answer))
        return
    made = "made " if action == "fork" else ""
    again = "; that was done before with this request key" if answer.replayed else ""
    click.echo(f"{made}{answer.execution_id}: {answer.status}{again}")


def _known_instead(ledger: Ledger, sort: Sort, name: str) -> str:
    """What was meant instead of a name that is unknown, or what to do about it."""
    known: list[tuple[Sort, str]] = ledger.run(_known())
    if (Sort.TASK, name) in known:
        return f"{name} is a task: say --task"
    if (Sort.WORKFLOW, name) in known:
        return f"{name} is a workflow: leave --task out"
    names = sorted(each for kind, each in known if kind is sort)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    if names:
        return f"there are: {', '.join(names)}"
    return "names are known once `oncekey serve` has run with their code"


def _known() -> Steps[list[tuple[Sort, str]]]:
    known: list[tuple[Sort, str]] = yield Known()
    return known
