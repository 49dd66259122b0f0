"""Durable work of all tenants for admins: the workflows and tasks that failed or are paused, how to
go on with one, and promises that are waited for."""

from __future__ import annotations

import secrets
from functools import partial
from hashlib import sha256

import msgspec

from oncekey.api import promises
from oncekey.api.admin.noting import RULE, note
from oncekey.api.endpoint import Call, Endpoint, Parameter, Reply
from oncekey.api.pages import page_of
from oncekey.api.requests import BEFORE, LIMIT, limit_in, word_in
from oncekey.api.schema_parts import words
from oncekey.api.workflows import FromStep, execution_before
from oncekey.core.errors import NotFound
from oncekey.core.execution import (
    Execution,
    Promise,
    Status,
    execution_number_of,
)
from oncekey.core.work import Action, ListExecutions
from oncekey.durable.shapes import (
    Shape,
    json_of,
    shape_of_control,
    shape_of_execution,
    shape_of_promise,
)
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK, ok

DEAD_LETTERS = (Status.FAILED, Status.PAUSED)


class ForkWorkflow(msgspec.Struct, forbid_unknown_fields=True):
    """From which step on a new execution does everything anew."""

    from_step: FromStep = 1


async def list_all(call: Call) -> Response:
    limit = limit_in(call.query)
    asked = word_in(call.query, "status", Status)
    before = execution_before(call)
    found: list[Execution] = []
    for status in DEAD_LETTERS if asked is None else (asked,):
        query = ListExecutions(
            call.query.get("tenant"),
            status,
            call.query.get("name"),
            before=before,
            limit=limit + 1,
        )
        found += await call.engine.executions(query)
    newest = sorted(found, key=lambda each: each.id, reverse=True)[: limit + 1]
    return page_of(
        "workflows", "next_before", newest, limit, _shape_of, lambda each: each.public_id
    )


async def show(call: Call) -> Response:
    return ok(json_of(_shape_of(await _found(call))))


async def control(action: Action, call: Call, body: ForkWorkflow | None = None) -> Response:
    execution = await _found(call)
    from_step = None if body is None else body.from_step
    answer = await call.engine.control(
        execution.tenant,
        action,
        execution.public_id,
        _request_key_of(call),
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


async def list_promises(call: Call) -> Response:
    return await promises.list_of(call.query.get("tenant"), _shape_of_promise, call)


async def _found(call: Call) -> Execution:
    """Of whatever tenant."""
    place = execution_number_of(call.path["id"])
    if place is not None:
        sort, number = place
        query = ListExecutions(None, sort=sort, before=number + 1, limit=1)
        for execution in await call.engine.executions(query):
            if execution.id == number:
                return execution
    raise NotFound


def _request_key_of(call: Call) -> str:
    """Which request this is to the engine. Keys of callers are apart: theirs are not digests."""
    assert call.caller is not None
    if call.key is None:
        return f"admin-{secrets.token_hex(16)}"
    return "admin-" + sha256(f"{call.caller.key_id}:{call.key}".encode()).hexdigest()


def _shape_of(execution: Execution) -> Shape:
    return {"tenant": execution.tenant, **shape_of_execution(execution)}


def _shape_of_promise(promise: Promise) -> Shape:
    return {"tenant": promise.tenant, **shape_of_promise(promise)}


_TENANT = Parameter("tenant", "Only of this tenant; of all when left out.", {"type": "string"})


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


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/admin/workflows",
        list_all,
        "List workflows and tasks that failed or are paused, newest first",
        {OK: Reply("A page of them.", "DeadLettersPage")},
        access="admin",
        query=(
            _TENANT,
            Parameter(
                "status",
                "Only of this status; `failed` and `paused` when left out.",
                words(Status),
            ),
            Parameter("name", "Only of this name.", {"type": "string"}),
            LIMIT,
            BEFORE,
        ),
    ),
    Endpoint(
        "GET",
        "/api/admin/workflows/{id}",
        show,
        "See a workflow or a task",
        {OK: Reply("As it is now.", "AnyExecution")},
        access="admin",
        problems=("not-found",),
    ),
    _control_endpoint("cancel", "End a workflow or a task for good"),
    _control_endpoint("resume", "Let a paused workflow or task go on"),
    _control_endpoint("fork", "Start a workflow anew from one of its steps", ForkWorkflow),
    Endpoint(
        "GET",
        "/api/admin/promises",
        list_promises,
        "List promises, newest first",
        {OK: Reply("A page of them.", "AnyPromisesPage")},
        access="admin",
        query=(_TENANT, *promises.FILTERS),
    ),
)
