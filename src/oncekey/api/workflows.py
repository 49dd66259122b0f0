"""Workflows and tasks over HTTP: started by key, seen, waited for, listed and controlled."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from oncekey.api.endpoint import Call, Endpoint, Parameter, Reply
from oncekey.api.pages import page_of
from oncekey.api.patience import LONGEST
from oncekey.api.requests import (
    BEFORE,
    LIMIT,
    WAIT,
    KeyMissing,
    before_in,
    key_of,
    limit_in,
    wait_in,
    word_in,
)
from oncekey.api.schema_parts import words
from oncekey.core.errors import InvalidInput, NotFound, RequestKeyInvalid
from oncekey.core.execution import Execution, Sort, Status, execution_number_of
from oncekey.core.work import Action, ListExecutions
from oncekey.durable.shapes import (
    json_of,
    shape_of_control,
    shape_of_entry,
    shape_of_execution,
)
from oncekey.wire.problem import Response
from oncekey.wire.replies import CREATED, OK, created, ok


class Start(msgspec.Struct, forbid_unknown_fields=True):
    """What to start an execution with."""

    input: Annotated[Raw | UnsetType, Meta(description="Any JSON; null when it is left out.")] = (
        UNSET
    )
    key: Annotated[
        str | None, Meta(description="As the header Idempotency-Key, which may be used instead.")
    ] = None
    on_failed: Annotated[
        Literal["keep", "free"],
        Meta(description="Whether an execution that fails or is cancelled gives its key back."),
    ] = "keep"


class Control(msgspec.Struct, forbid_unknown_fields=True):
    """Which request this is."""

    request_key: Annotated[
        Any,
        Meta(
            description="As the header Idempotency-Key, which may be used instead: a string, not "
            "empty after trimming, of at most 200 bytes."
        ),
    ] = None


FromStep = Annotated[
    int, Meta(ge=1, le=(1 << 31) - 1, description="Its number in the journal; the first is 1.")
]


class Fork(Control, forbid_unknown_fields=True):
    """From which step on a new execution does everything anew."""

    from_step: FromStep = 1


async def start(sort: Sort, call: Call, body: Start) -> Response:
    key = key_of(call, key=body.key)
    given = b"null" if body.input is UNSET else bytes(body.input)
    execution, is_new = await call.engine.start(
        call.tenant, sort, call.path["name"], given, key=key, on_failed=body.on_failed
    )
    answer = json_of(shape_of_execution(execution))
    if is_new:
        return created(answer, call.location(_PLURAL[sort], execution.public_id))
    return ok(answer, replayed=True)


async def show(sort: Sort, call: Call) -> Response:
    number = _id_in(call, sort)
    seconds = wait_in(call.query, LONGEST)
    execution: Execution | None = None
    if seconds:
        waiting = call.engine.wait(call.tenant, number, seconds)
        execution = await call.patience.wait(waiting, call.receive)
    if execution is None:
        execution = await call.engine.execution(call.tenant, number)
    return ok(json_of(shape_of_execution(execution)))


async def journal(call: Call) -> Response:
    limit, after = limit_in(call.query), journal_after(call)
    entries = await call.engine.journal(call.tenant, _id_in(call, Sort.WORKFLOW))
    numbered = list(enumerate(entries, 1))[after : after + limit + 1]
    return page_of(
        "entries",
        "next_after",
        numbered,
        limit,
        lambda each: shape_of_entry(*each),
        lambda each: each[0],
    )


async def list_all(sort: Sort, call: Call) -> Response:
    limit = limit_in(call.query)
    query = ListExecutions(
        call.tenant,
        word_in(call.query, "status", Status),
        call.query.get("name"),
        sort,
        execution_before(call),
        limit + 1,
    )
    found = await call.engine.executions(query)
    return page_of(
        _PLURAL[sort],
        "next_before",
        found,
        limit,
        shape_of_execution,
        lambda execution: execution.public_id,
    )


async def control(action: Action, call: Call, body: Control) -> Response:
    if body.request_key is not None and not isinstance(body.request_key, str):
        raise RequestKeyInvalid
    key = key_of(call, request_key=body.request_key)
    if key is None:
        raise KeyMissing("send a header 'Idempotency-Key', or 'request_key' in the body")
    answer = await call.engine.control(
        call.tenant,
        action,
        _id_in(call, Sort.WORKFLOW),
        key,
        from_step=body.from_step if isinstance(body, Fork) else None,
    )
    return ok(json_of(shape_of_control(answer)), replayed=answer.replayed)


def _id_in(call: Call, sort: Sort) -> str:
    """A task is nothing among workflows, and the other way round."""
    found = execution_number_of(call.path["id"])
    if found is None or found[0] is not sort:
        raise NotFound
    return call.path["id"]


def execution_before(call: Call) -> int | None:
    found = before_in(call.query, execution_number_of, "not an id")
    return None if found is None else found[1]


def journal_after(call: Call) -> int:
    text = call.query.get("after", "0")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InvalidInput("after is the number of a step; send the next_after of the page above")
    return int(text)


_PLURAL = {Sort.WORKFLOW: "workflows", Sort.TASK: "tasks"}
_FILTERS = (
    Parameter("status", "Only of this status.", words(Status)),
    Parameter("name", "Only of this name.", {"type": "string"}),
    LIMIT,
    BEFORE,
)


def _endpoints_of(sort: Sort) -> tuple[Endpoint, ...]:
    """What workflows and tasks have in common."""
    word, plural = sort.name.lower(), _PLURAL[sort]
    return (
        Endpoint(
            "POST",
            f"/api/tenants/{{tenant}}/{plural}/{{name}}/start",
            partial(start, sort),
            f"Start a {word}",
            {
                CREATED: Reply("It was started by this request.", "Execution"),
                OK: Reply("The key had been used before: this is what it stands for.", "Execution"),
            },
            policy="ACCEPTED",
            body=Start,
            problems=("name-unknown", "idempotency-key-reused", "payload-too-large"),
        ),
        Endpoint(
            "GET",
            f"/api/tenants/{{tenant}}/{plural}",
            partial(list_all, sort),
            f"List {plural}, newest first",
            {OK: Reply("A page of them.", f"{plural.capitalize()}Page")},
            query=_FILTERS,
        ),
        Endpoint(
            "GET",
            f"/api/tenants/{{tenant}}/{plural}/{{id}}",
            partial(show, sort),
            f"See a {word}, and wait for its end",
            {OK: Reply("As it is now.", "Execution")},
            query=(WAIT,),
            problems=("not-found",),
        ),
    )


def _control_endpoint(action: Action, summary: str, body: type[Control]) -> Endpoint:
    return Endpoint(
        "POST",
        f"/api/tenants/{{tenant}}/workflows/{{id}}/{action}",
        partial(control, action),
        summary,
        {OK: Reply("What became of it, now or when the key was used first.", "Controlled")},
        policy="REQUIRED_A",
        body=body,
        problems=("not-found", "request-key-invalid", "control-refused", "request-in-progress"),
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    *_endpoints_of(Sort.WORKFLOW),
    Endpoint(
        "GET",
        "/api/tenants/{tenant}/workflows/{id}/journal",
        journal,
        "Read the journal of a workflow",
        {OK: Reply("Its finished steps, in the order in which they ended.", "JournalPage")},
        query=(
            LIMIT,
            Parameter("after", "The `next_after` of an earlier page.", {"type": "integer"}),
        ),
        problems=("not-found",),
    ),
    _control_endpoint("cancel", "Cancel a workflow", Control),
    _control_endpoint("resume", "Resume a workflow that is paused", Control),
    _control_endpoint("fork", "Start a workflow anew from one of its steps", Fork),
    *_endpoints_of(Sort.TASK),
)
