"""Durable work of all tenants for admins: workflows and tasks, of which those that failed or are
paused come first, and how to go on with one."""

from __future__ import annotations

import asyncio
from functools import partial

import msgspec

from oncekey.api.admin.bounded import shape_of_any_execution
from oncekey.api.admin.finding import execution_at, execution_in
from oncekey.api.admin.merging import further_in, merged
from oncekey.api.admin.noting import RULE, note, request_key_of
from oncekey.api.admin.waiting import wait_of, waits_of
from oncekey.api.endpoint import Call, Endpoint, Parameter, Reply
from oncekey.api.pages import page_of
from oncekey.api.requests import BEFORE, LIMIT, limit_in, word_in
from oncekey.api.schema_parts import words
from oncekey.api.workflows import FromStep, execution_before
from oncekey.core.execution import Execution, PromiseKind, Sort, Status, execution_id_of
from oncekey.core.looking import LOOK, Looked
from oncekey.core.model import operation_id_of
from oncekey.core.ports import Query
from oncekey.core.work import Action, ListExecutions, ListPromises
from oncekey.durable.embedded.asking import STARTS, is_of_durable_work, ref_of
from oncekey.durable.shapes import json_of, shape_of_control, time_of
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK, ok

DEAD_LETTERS = (Status.FAILED, Status.PAUSED)
_ALL = "all"
_HOLDERS = {True: "alive", False: "lapsed", None: None}
# Forks are looked for among the newest, callers among what is near.
_FORKS, _LOOKED_AT = 200, 10_000
_NEAR = 100


class ForkWorkflow(msgspec.Struct, forbid_unknown_fields=True):
    """From which step on a new execution does everything anew."""

    from_step: FromStep = 1


async def list_all(call: Call) -> Response:
    limit, before = limit_in(call.query), execution_before(call)
    sort, statuses = word_in(call.query, "sort", Sort), _statuses_in(call)
    if "key" in call.query:
        found = await _keyed(call, sort, statuses)
    else:
        name, tenant = call.query.get("name"), call.query.get("tenant")
        query = ListExecutions(tenant, None, name, sort, before, limit + 1, LOOK)
        found = merged(
            [await call.engine.executions(query._replace(status=status)) for status in statuses]
        )
    waits = await waits_of(call, found)
    return page_of(
        "workflows",
        "next_before",
        found,
        limit,
        lambda each: {**shape_of_any_execution(each), "waits_for": waits.get(each.id)},
        lambda each: each.public_id,
        **further_in(found, partial(execution_id_of, Sort.WORKFLOW)),
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
) -> Looked[Execution]:
    """What was started with the key, one of each tenant, if it fits the rest of what is asked."""
    name = call.query.get("name")
    numbers = await _numbers_with(call, call.query["key"])
    # A claim of a start has the number of what was started.
    found = [await execution_at(call, number) for number in numbers]
    fitting = (
        each
        for each in found
        if each is not None
        and sort in {None, each.sort}
        and name in {None, each.name}
        and {None, each.status} & set(statuses)
    )
    return Looked(fitting, numbers.to)


async def _numbers_with(call: Call, key: str) -> Looked[int]:
    tenant = call.query.get("tenant")
    if tenant is not None:
        record = await call.ledger.apeek(ref_of(tenant, STARTS, key))
        before = execution_before(call)
        there = record is not None and (before is None or record.id < before)
        return Looked([record.id] if record is not None and there else ())
    limit = limit_in(call.query) + 1
    query = Query(key=key, endpoint=STARTS, before=execution_before(call), limit=limit, look=LOOK)
    page = await asyncio.to_thread(call.ledger.list, query)
    # Applications may have endpoints of that name, too.
    mine = (each.record for each in page if is_of_durable_work(each.record.ref.scope, STARTS))
    return Looked((each.id for each in mine), page.to)


async def show(call: Call) -> Response:
    execution = await execution_in(call)
    keyed = execution.key is not None
    shape = {
        **shape_of_any_execution(execution),
        "waits_for": await wait_of(call, execution),
        "operation_id": operation_id_of(execution.id) if keyed else None,
        "holder": _HOLDERS[await call.engine.is_held(execution)],
        "must_end_by": time_of(execution.due_at),
        "called_by": await _caller_of(call, execution),
        "forked_at": execution.forked_at,
        "forks": [each.public_id for each in await _forks_of(call, execution)],
    }
    return ok(json_of(shape))


async def _caller_of(call: Call, execution: Execution) -> str | None:
    """What waits for a call is made right before what is called: it need not be looked for long."""
    query = ListPromises(
        execution.tenant,
        kind=PromiseKind.CALL,
        before=execution.id,
        limit=_NEAR,
        look=_NEAR,
    )
    for promise in await call.engine.promises(query):
        if promise.target == execution.id and promise.execution is not None:
            return execution_id_of(promise.sort, promise.execution)
    return None


async def _forks_of(call: Call, execution: Execution) -> list[Execution]:
    query = ListExecutions(
        execution.tenant, None, execution.name, execution.sort, limit=_FORKS, look=_LOOKED_AT
    )
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
                "Only what was started with this key, of any status; at once with `tenant`.",
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
