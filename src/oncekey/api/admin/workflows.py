"""Durable work of all tenants for admins: workflows and tasks, of which those that failed or are
paused come first, and how to go on with one."""

from __future__ import annotations

from functools import partial

import msgspec

from oncekey.api.admin.bounded import shape_of_any_execution
from oncekey.api.admin.finding import execution_at, execution_in
from oncekey.api.admin.merging import merged
from oncekey.api.admin.noting import RULE, note, request_key_of
from oncekey.api.endpoint import Call, Endpoint, Parameter, Reply
from oncekey.api.pages import page_of
from oncekey.api.requests import BEFORE, LIMIT, limit_in, word_in
from oncekey.api.schema_parts import words
from oncekey.api.workflows import FromStep, execution_before
from oncekey.core.errors import InvalidInput
from oncekey.core.execution import Execution, Sort, Status, execution_id_of
from oncekey.core.looking import LOOK, Looked
from oncekey.core.model import operation_id_of
from oncekey.core.work import Action, ListExecutions
from oncekey.durable.embedded.asking import STARTS, ref_of
from oncekey.durable.shapes import json_of, shape_of_control, time_of
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK, ok

DEAD_LETTERS = (Status.FAILED, Status.PAUSED)
_ALL = "all"
# Forks are looked for among so many of the newest.
_LOOKED_AT = 200


class ForkWorkflow(msgspec.Struct, forbid_unknown_fields=True):
    """From which step on a new execution does everything anew."""

    from_step: FromStep = 1


async def list_all(call: Call) -> Response:
    limit, before = limit_in(call.query), execution_before(call)
    sort, statuses = word_in(call.query, "sort", Sort), _statuses_in(call)
    if "key" in call.query:
        found = Looked(await _keyed(call, sort, statuses))
    else:
        name, tenant = call.query.get("name"), call.query.get("tenant")
        query = ListExecutions(tenant, None, name, sort, before, limit + 1, LOOK)
        found = merged(
            [await call.engine.executions(query._replace(status=status)) for status in statuses]
        )
    return page_of(
        "workflows",
        "next_before",
        found,
        limit,
        shape_of_any_execution,
        lambda each: each.public_id,
        further=None if found.to is None else execution_id_of(Sort.WORKFLOW, found.to),
    )


def _statuses_in(call: Call) -> tuple[Status | None, ...]:
    """None stands for any."""
    if call.query.get("status") == _ALL:
        return (None,)
    asked = word_in(call.query, "status", Status)
    if asked is not None:
        return (asked,)
    return (None,) if "key" in call.query else DEAD_LETTERS


async def _keyed(
    call: Call, sort: Sort | None, statuses: tuple[Status | None, ...]
) -> list[Execution]:
    """The one that was started with the key, if it fits the rest of what is asked."""
    tenant, name = call.query.get("tenant"), call.query.get("name")
    if tenant is None:
        raise InvalidInput("a key is one of a tenant; send tenant as well")
    if "before" in call.query:
        raise InvalidInput("one key has no other page; leave before out")
    record = await call.ledger.apeek(ref_of(tenant, STARTS, call.query["key"]))
    # A claim of a start has the number of what was started.
    found = None if record is None else await execution_at(call, record.id)
    if found is None or sort not in {None, found.sort} or name not in {None, found.name}:
        return []
    return [found] if {None, found.status} & set(statuses) else []


async def show(call: Call) -> Response:
    execution = await execution_in(call)
    keyed = execution.key is not None
    shape = {
        **shape_of_any_execution(execution),
        "operation_id": operation_id_of(execution.id) if keyed else None,
        "must_end_by": time_of(execution.due_at),
        "forked_at": execution.forked_at,
        "forks": [each.public_id for each in await _forks_of(call, execution)],
    }
    return ok(json_of(shape))


async def _forks_of(call: Call, execution: Execution) -> list[Execution]:
    query = ListExecutions(execution.tenant, sort=execution.sort, limit=_LOOKED_AT)
    found = await call.engine.executions(query)
    return [each for each in found if each.forked_from == execution.id]


async def control(action: Action, call: Call, body: ForkWorkflow | None = None) -> Response:
    execution = await execution_in(call)
    from_step = None if body is None else body.from_step
    answer = await call.engine.control(
        execution.tenant,
        action,
        execution.public_id,
        request_key_of(call),
        from_step=from_step,
    )
    # A request that is sent again with its key is answered as before, and is noted then.
    await note(
        call,
        f"workflow.{action}",
        execution.public_id,
        tenant=execution.tenant,
        name=execution.name,
        from_step=from_step,
        made=answer.execution_id if action == "fork" else None,
    )
    return ok(json_of(shape_of_control(answer)), replayed=answer.replayed)


def _control_endpoint(
    action: Action, summary: str, body: type[ForkWorkflow] | None = None
) -> Endpoint:
    return Endpoint(
        "POST",
        f"/api/admin/workflows/{{id}}/{action}",
        partial(control, action),
        summary,
        {OK: Reply("What became of it.", "Controlled")},
        policy="ACCEPTED",
        access="admin",
        body=body,
        problems=("not-found", "control-refused"),
        rule=RULE,
    )


_TENANT = Parameter("tenant", "Only of this tenant; of all when left out.", {"type": "string"})
_STATUS = {"type": "string", "enum": [*words(Status)["enum"], _ALL]}

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/admin/workflows",
        list_all,
        "List workflows and tasks, those that failed or are paused unless asked, newest first",
        {OK: Reply("A page of them.", "AnyExecutionsPage")},
        access="admin",
        query=(
            _TENANT,
            Parameter(
                "status",
                "Only of this status; `failed` and `paused` when left out, `all` for any.",
                _STATUS,
            ),
            Parameter("name", "Only of this name.", {"type": "string"}),
            Parameter("sort", "Only workflows, or only tasks.", words(Sort)),
            Parameter(
                "key",
                "Only the one that was started with this key, of any status; with `tenant`.",
                {"type": "string"},
            ),
            LIMIT,
            BEFORE,
        ),
        problems=("idempotency-key-invalid",),
    ),
    Endpoint(
        "GET",
        "/api/admin/workflows/{id}",
        show,
        "See a workflow or a task",
        {OK: Reply("As it is now.", "WholeExecution")},
        access="admin",
        problems=("not-found",),
    ),
    _control_endpoint("cancel", "End a workflow or a task for good"),
    _control_endpoint("resume", "Let a paused workflow or task go on"),
    _control_endpoint("fork", "Start a workflow anew from one of its steps", ForkWorkflow),
)
