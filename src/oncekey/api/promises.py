"""Promises over HTTP: made, seen, waited for, listed and settled."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from oncekey.api.endpoint import Call, Endpoint, Parameter, Reply
from oncekey.api.pages import page_of
from oncekey.api.patience import LONGEST
from oncekey.api.requests import (
    BEFORE,
    LIMIT,
    MAX_BODY,
    WAIT,
    Duration,
    before_in,
    bool_in,
    key_of,
    limit_in,
    seconds_in,
    wait_in,
    word_in,
)
from oncekey.api.schema_parts import words
from oncekey.core.errors import InvalidInput
from oncekey.core.execution import Promise, PromiseKind, PromiseState, promise_place_of
from oncekey.core.work import ListPromises
from oncekey.durable.address import Address, ById, ByKey, ByName, ByToken
from oncekey.durable.engine import PARK_TTL
from oncekey.durable.shapes import (
    json_of,
    shape_of_new_promise,
    shape_of_promise,
    shape_of_settle,
)
from oncekey.wire.problem import Response
from oncekey.wire.replies import ACCEPTED, CREATED, OK, accepted, created, ok
from oncekey.wire.rule import Rule

Key = Annotated[
    str | None, Meta(description="As the header Idempotency-Key, which may be used instead.")
]
_REASON = "Any JSON: a text, or an object with a `message`. The workflow gets it as the reason."
Settling = Literal[PromiseState.RESOLVED, PromiseState.REJECTED]
Value = Annotated[Raw | UnsetType, Meta(description="Any JSON.")]


class CreatePromise(msgspec.Struct, forbid_unknown_fields=True):
    """A promise without a workflow."""

    name: str
    key: Annotated[str | None, Meta(description="By which it can be resolved.")] = None
    key_ttl: Duration = None
    timeout: Duration = None
    token: Annotated[
        bool,
        Meta(
            description="Whether to make a token for it. A token is told once and not kept, so "
            "this does not go together with an Idempotency-Key."
        ),
    ] = False


class Settle(msgspec.Struct, forbid_unknown_fields=True):
    """Which request this is, and what to do when nobody has the key so far."""

    request_id: Key = None
    idempotency_key: Key = None
    park: Annotated[
        bool | None, Meta(description="Keep it until a promise with the key is made.")
    ] = None
    park_ttl: Duration = None


class Resolve(Settle, forbid_unknown_fields=True):
    """What to resolve a promise with: `value`, or `result`, or null."""

    value: Value = UNSET
    result: Value = UNSET


class Reject(Settle, forbid_unknown_fields=True):
    """What to reject a promise with."""

    error: Annotated[Raw | UnsetType, Meta(description=_REASON)] = UNSET


class Complete(msgspec.Struct, forbid_unknown_fields=True):
    """Exactly one of `result` and `error`."""

    request_id: Key = None
    idempotency_key: Key = None
    result: Value = UNSET
    error: Annotated[Raw | UnsetType, Meta(description=_REASON)] = UNSET


class CompleteByToken(Complete, forbid_unknown_fields=True, kw_only=True):
    """Exactly one of `result` and `error`, for the promise of a token."""

    token: str


async def create(call: Call, body: CreatePromise) -> Response:
    if body.token and call.key is not None:
        raise InvalidInput(
            "a token is told once, and the answer to a request with an Idempotency-Key is kept; "
            "leave out the header, or the token"
        )
    answer = await call.engine.create_promise(
        call.tenant,
        body.name,
        key=body.key,
        key_ttl=seconds_in("key_ttl", body.key_ttl),
        timeout=seconds_in("timeout", body.timeout),
        token=body.token,
    )
    location = call.location("promises", f"id:{answer.promise.public_id}")
    return created(json_of(shape_of_new_promise(answer)), location)


async def show(call: Call) -> Response:
    address, seconds = _address_in(call), wait_in(call.query, LONGEST)
    promise: Promise | None = None
    if seconds:
        waiting = call.engine.wait_promise(call.tenant, address, seconds)
        promise = await call.patience.wait(waiting, call.receive)
    if promise is None:
        promise = await call.engine.promise(call.tenant, address)
    return ok(json_of(shape_of_promise(promise)))


async def list_all(call: Call) -> Response:
    limit = limit_in(call.query)
    query = ListPromises(
        call.tenant,
        word_in(call.query, "state", PromiseState),
        PromiseKind.PROMISE,
        before=before_in(call.query, number_in_page, "not of a page"),
        limit=limit + 1,
    )
    found = await call.engine.promises(query)
    return page_of(
        "promises",
        "next_before",
        found,
        limit,
        shape_of_promise,
        lambda promise: f"pr_{promise.id:016x}",
    )


async def resolve(call: Call, body: Resolve) -> Response:
    if body.value is not UNSET and body.result is not UNSET:
        raise InvalidInput("value and result mean the same; send one")
    value = body.result if body.value is UNSET else body.value
    return await _settle_addressed(PromiseState.RESOLVED, _content(value), call, body)


async def reject(call: Call, body: Reject) -> Response:
    return await _settle_addressed(PromiseState.REJECTED, _content(body.error), call, body)


async def complete_by_token(call: Call, body: CompleteByToken) -> Response:
    return await _complete(ByToken(body.token), call, body)


async def complete_by_name(call: Call, body: Complete) -> Response:
    return await _complete(ByName(call.path["id"], call.path["name"]), call, body)


async def _settle_addressed(state: Settling, content: bytes, call: Call, body: Settle) -> Response:
    asked = bool_in(call.query, "park")
    if body.park is not None and asked is not None and body.park != asked:
        raise InvalidInput("park differs in the query and in the body; send it once")
    park_ttl = seconds_in("park_ttl", body.park_ttl)
    return await _settle(
        state,
        _address_in(call),
        content,
        call,
        body,
        park=bool(body.park or asked),
        park_ttl=PARK_TTL if park_ttl is None else park_ttl,
    )


async def _complete(address: Address, call: Call, body: Complete) -> Response:
    if (body.result is UNSET) is (body.error is UNSET):
        raise InvalidInput("send exactly one of result and error")
    if body.error is UNSET:
        return await _settle(PromiseState.RESOLVED, address, _content(body.result), call, body)
    return await _settle(PromiseState.REJECTED, address, _content(body.error), call, body)


async def _settle(
    state: Settling,
    address: Address,
    content: bytes,
    call: Call,
    body: Settle | Complete,
    **parking: Any,
) -> Response:
    key = key_of(call, request_id=body.request_id, idempotency_key=body.idempotency_key)
    answer = await call.engine.settle(
        call.tenant, address, state, content, request_key=key, **parking
    )
    reply = ok if answer.promise is not None else accepted
    replayed = answer.key_used and not answer.key_new
    return reply(json_of(shape_of_settle(answer)), replayed=replayed)


def _content(value: Raw | UnsetType) -> bytes:
    return b"null" if value is UNSET else bytes(value)


def _address_in(call: Call) -> Address:
    kind, _, rest = call.path["address"].partition(":")
    match kind:
        case "id" if rest:
            return ById(rest)
        case "key" if rest:
            return ByKey(rest)
        case _:
            # A token in a path would be in every log on the way.
            raise InvalidInput(
                "a promise is addressed as id:… or key:… here; with a token, POST to "
                "/api/v1/promises/complete"
            )


def number_in_page(cursor: str) -> int | None:
    """A page ends with the number of a promise, whatever its name is."""
    place = promise_place_of(f"{cursor}:x")
    return None if place is None else place.id


_ONE = "/api/tenants/{tenant}/promises/{address:path}"
FILTERS = (Parameter("state", "Only of this state.", words(PromiseState)), LIMIT, BEFORE)
_PARK = Parameter("park", "As `park` in the body.", {"type": "boolean"})
_SETTLED = {
    OK: Reply("Settled, now or before: `already_resolved` tells.", "Settled"),
}
_PARKED = {
    ACCEPTED: Reply("Parked: nobody has the key so far.", "Settled"),
}
_REFUSALS = ("not-found", "idempotency-key-reused", "promise-over", "payload-too-large")

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST",
        "/api/tenants/{tenant}/promises",
        create,
        "Make a promise without a workflow",
        {CREATED: Reply("It was made.", "NewPromise")},
        policy="ACCEPTED",
        body=CreatePromise,
        problems=("key-conflict",),
        rule=Rule(max_request_body=MAX_BODY),
    ),
    Endpoint(
        "GET",
        "/api/tenants/{tenant}/promises",
        list_all,
        "List promises, newest first",
        {OK: Reply("A page of them.", "PromisesPage")},
        query=FILTERS,
    ),
    Endpoint(
        "POST",
        f"{_ONE}/resolve",
        resolve,
        "Resolve a promise",
        _SETTLED | _PARKED,
        policy="ACCEPTED",
        body=Resolve,
        query=(_PARK,),
        problems=_REFUSALS,
    ),
    Endpoint(
        "POST",
        f"{_ONE}/reject",
        reject,
        "Reject a promise",
        _SETTLED | _PARKED,
        policy="ACCEPTED",
        body=Reject,
        query=(_PARK,),
        problems=_REFUSALS,
    ),
    Endpoint(
        "GET",
        _ONE,
        show,
        "See a promise, and wait until it is settled",
        {OK: Reply("As it is now.", "Promise")},
        query=(WAIT,),
        problems=("not-found", "idempotency-key-invalid"),
    ),
    Endpoint(
        "POST",
        "/api/v1/promises/complete",
        complete_by_token,
        "Settle the promise of a token",
        _SETTLED,
        policy="ACCEPTED",
        body=CompleteByToken,
        problems=_REFUSALS,
    ),
    Endpoint(
        "POST",
        "/api/v1/workflows/{id}/promises/{name:path}/complete",
        complete_by_name,
        "Settle the promise of a workflow by its name",
        _SETTLED,
        policy="ACCEPTED",
        body=Complete,
        problems=_REFUSALS,
    ),
)
