"""Promises of all tenants for admins: who waits for one, who settled it, and settling by hand."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from oncekey.api.admin.bounded import shape_of_any_promise
from oncekey.api.admin.finding import promise_with
from oncekey.api.admin.merging import further_in
from oncekey.api.admin.noting import RULE, note, request_key_of
from oncekey.api.admin.settlers import settler_of
from oncekey.api.endpoint import Call, Endpoint, Parameter, Reply
from oncekey.api.pages import page_of
from oncekey.api.promises import FILTERS, number_in_page
from oncekey.api.requests import before_in, limit_in, word_in
from oncekey.core.errors import NotFound
from oncekey.core.execution import Promise, PromiseKind, PromiseState, execution_id_of
from oncekey.core.looking import LOOK
from oncekey.core.model import operation_id_of
from oncekey.core.work import ListPromises
from oncekey.durable.address import ById
from oncekey.durable.shapes import Shape, json_of
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK, ok


class ResolvePromise(msgspec.Struct, forbid_unknown_fields=True):
    """What a promise is resolved with."""

    value: Annotated[Raw | UnsetType, Meta(description="Any JSON; null when it is left out.")] = (
        UNSET
    )


class RejectPromise(msgspec.Struct, forbid_unknown_fields=True):
    """Why a promise is rejected."""

    error: Annotated[
        Raw | UnsetType,
        Meta(description="Any JSON, such as an object with a `message`; null when left out."),
    ] = UNSET


async def list_all(call: Call) -> Response:
    limit = limit_in(call.query)
    query = ListPromises(
        call.query.get("tenant"),
        word_in(call.query, "state", PromiseState),
        PromiseKind.PROMISE,
        before=before_in(call.query, number_in_page, "not of a page"),
        limit=limit + 1,
        key=call.query.get("key"),
        look=LOOK,
    )
    found = await call.engine.promises(query)
    return page_of(
        "promises",
        "next_before",
        found,
        limit,
        shape_of_any_promise,
        lambda promise: f"pr_{promise.id:016x}",
        **further_in(found, lambda number: f"pr_{number:016x}"),
    )


async def show(call: Call) -> Response:
    promise = await promise_with(call, call.path["id"])
    shape = {
        **shape_of_any_promise(promise),
        # The claim of a promise's key has the promise's number.
        "operation_id": None if promise.key is None else operation_id_of(promise.id),
        "waiter": await _waiter_of(call, promise),
        "settled_by": await settler_of(call, promise),
    }
    return ok(json_of(shape))


async def resolve(call: Call, body: ResolvePromise) -> Response:
    value = b"null" if body.value is UNSET else bytes(body.value)
    return await _settle(call, "resolve", value)


async def reject(call: Call, body: RejectPromise) -> Response:
    error = b"null" if body.error is UNSET else bytes(body.error)
    return await _settle(call, "reject", error)


async def _settle(call: Call, verb: str, content: bytes) -> Response:
    promise = await promise_with(call, call.path["id"])
    if promise.state is PromiseState.PENDING:
        # What is settled already stays as it is, so there is nothing to note.
        await note(
            call,
            f"promise.{verb}",
            promise.public_id,
            tenant=promise.tenant,
            key=promise.key,
            bytes=len(content),
        )
    answer = await call.engine.settle(
        promise.tenant,
        ById(promise.public_id),
        PromiseState.RESOLVED if verb == "resolve" else PromiseState.REJECTED,
        content,
        request_key=request_key_of(call),
    )
    assert answer.promise is not None
    shape = {
        "promise": shape_of_any_promise(answer.promise),
        "already_resolved": answer.already_resolved,
    }
    return ok(json_of(shape), replayed=not answer.key_new)


async def _waiter_of(call: Call, promise: Promise) -> Shape | None:
    """The execution that made it; one made through the API has none."""
    if promise.execution is None:
        return None
    waiter_id = execution_id_of(promise.sort, promise.execution)
    try:
        found = await call.engine.execution(promise.tenant, waiter_id)
    except NotFound:
        return None
    return {"id": found.public_id, "name": found.name, "status": found.status.name.lower()}


_ONE = "/api/admin/promises/{id:path}"
_OVER = ("not-found", "promise-over")
_SETTLED = {OK: Reply("As it is now; `already_resolved` when it was before.", "AnySettled")}

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/admin/promises",
        list_all,
        "List promises, newest first",
        {OK: Reply("A page of them.", "AnyPromisesPage")},
        access="admin",
        query=(
            Parameter("tenant", "Only of this tenant; of all when left out.", {"type": "string"}),
            Parameter("key", "Only with this key.", {"type": "string"}),
            *FILTERS,
        ),
        problems=("idempotency-key-invalid",),
    ),
    Endpoint(
        "POST",
        f"{_ONE}/resolve",
        resolve,
        "Give a promise its value; the workflow that waits for it goes on",
        _SETTLED,
        policy="ACCEPTED",
        access="admin",
        body=ResolvePromise,
        problems=_OVER,
        rule=RULE,
    ),
    Endpoint(
        "POST",
        f"{_ONE}/reject",
        reject,
        "Give a promise an error; the workflow that waits for it gets PromiseRejected",
        _SETTLED,
        policy="ACCEPTED",
        access="admin",
        body=RejectPromise,
        problems=_OVER,
        rule=RULE,
    ),
    Endpoint(
        "GET",
        _ONE,
        show,
        "See a promise, who waits for it, and who settled it",
        {OK: Reply("As it is now.", "WholePromise")},
        access="admin",
        problems=("not-found",),
    ),
)
