"""Events of all tenants for admins: what was published, and publishing by hand."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from oncekey.api.admin.bounded import value_of
from oncekey.api.admin.merging import further_in
from oncekey.api.admin.noting import RULE, note, request_key_of
from oncekey.api.endpoint import Call, Endpoint, Parameter, Reply
from oncekey.api.pages import page_of
from oncekey.api.requests import BEFORE, LIMIT, before_in, limit_in
from oncekey.core.errors import NotFound
from oncekey.core.execution import PromiseKind, PromiseState, execution_id_of
from oncekey.core.identifier import number_in
from oncekey.core.looking import LOOK
from oncekey.core.scope import namespace_of
from oncekey.core.work import Event, ListPromises, event_id_of
from oncekey.durable.shapes import Shape, json_of, shape_of_event
from oncekey.wire.problem import Response
from oncekey.wire.replies import CREATED, OK, created, ok

_WAITS, _LOOKED_AT = 50, 10_000


class PublishEvent(msgspec.Struct, forbid_unknown_fields=True):
    """An event, as if the tenant had published it."""

    tenant: str
    topic: Annotated[str, Meta(description="What workflows wait for, such as `shipment:created`.")]
    data: Annotated[
        Raw | UnsetType, Meta(description="Any JSON; conditions see it as `input`.")
    ] = UNSET
    headers: Annotated[
        dict[str, str] | None, Meta(description="Conditions see them as `headers`.")
    ] = None


async def list_all(call: Call) -> Response:
    limit = limit_in(call.query)
    found = await call.engine.events(
        call.query.get("tenant"),
        call.query.get("topic"),
        limit + 1,
        before=before_in(call.query, _number_of, "no event"),
        look=LOOK,
    )
    return page_of(
        "events",
        "next_before",
        found,
        limit,
        _shape_of,
        lambda event: event_id_of(event.id),
        **further_in(found, event_id_of),
    )


async def show(call: Call) -> Response:
    number = _number_of(call.path["id"])
    if number is not None:
        for event in await call.engine.events(None, limit=1, before=number + 1):
            if event.id == number:
                return ok(json_of({**_shape_of(event), "woke": await _woken_by(call, event)}))
    raise NotFound("there is no such event, or it is not kept any more")


async def _woken_by(call: Call, event: Event) -> list[Shape]:
    """Who went on with it, as far as that is known without a long search: what waited for it was
    made before it, mostly not long before."""
    query = ListPromises(
        event.tenant,
        PromiseState.RESOLVED,
        PromiseKind.EVENT,
        before=event.id,
        limit=_WAITS,
        look=_LOOKED_AT,
    )
    name = event_id_of(event.id)
    return [
        {"id": execution_id_of(each.sort, each.execution), "name": each.name}
        for each in await call.engine.promises(query)
        if each.settled_by == name and each.execution is not None
    ]


async def publish(call: Call, body: PublishEvent) -> Response:
    data = b"null" if body.data is UNSET else bytes(body.data)
    # What is wrong with a tenant is told here; an event of nobody's would only wake nobody.
    namespace_of(body.tenant)
    answer = await call.engine.publish(
        body.tenant,
        body.topic,
        data,
        headers=body.headers,
        idempotency_key=request_key_of(call),
    )
    # A request that is sent again with its key is answered as before, and is noted then.
    await note(
        call,
        "event.publish",
        answer.event_id,
        tenant=body.tenant,
        topic=body.topic,
        matched=answer.matched,
        bytes=len(data),
    )
    return created(json_of({"event_id": answer.event_id, "matched": answer.matched}))


def _number_of(text: str) -> int | None:
    return number_in("ev_", text)


def _shape_of(event: Event) -> Shape:
    data = value_of(event.data) or event.data
    return {
        "tenant": event.tenant,
        **shape_of_event(event._replace(data=data)),
        "whole": data == event.data,
        "matched": event.matched,
    }


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/admin/events",
        list_all,
        "List the events that are kept still, newest first",
        {OK: Reply("A page of them.", "AnyEventsPage")},
        access="admin",
        query=(
            Parameter("tenant", "Only of this tenant; of all when left out.", {"type": "string"}),
            Parameter("topic", "Only of this key.", {"type": "string"}),
            LIMIT,
            BEFORE,
        ),
    ),
    Endpoint(
        "POST",
        "/api/admin/events",
        publish,
        "Publish an event of a tenant by hand",
        {CREATED: Reply("How many it woke.", "AnyPublished")},
        policy="ACCEPTED",
        access="admin",
        body=PublishEvent,
        rule=RULE,
    ),
    Endpoint(
        "GET",
        "/api/admin/events/{id}",
        show,
        "See an event, and who went on with it",
        {OK: Reply("As it was published.", "WholeEvent")},
        access="admin",
        problems=("not-found",),
    ),
)
