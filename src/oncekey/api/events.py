"""Events over HTTP: published once, whatever is retried."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from oncekey.api.endpoint import Call, Endpoint, Parameter, Reply
from oncekey.api.pages import fitting
from oncekey.api.requests import LIMIT, key_of, limit_in
from oncekey.durable.shapes import json_of, shape_of_event, shape_of_publish
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK, ok


class Publish(msgspec.Struct, forbid_unknown_fields=True):
    """An event: what it is about, and what is known of it."""

    key: Annotated[str, Meta(description="What workflows wait for, such as `shipment:created`.")]
    data: Annotated[
        Raw | UnsetType, Meta(description="Any JSON; conditions see it as `input`.")
    ] = UNSET
    headers: Annotated[
        dict[str, str] | None, Meta(description="Conditions see them as `headers`.")
    ] = None
    idempotency_key: Annotated[
        str | None, Meta(description="As the header Idempotency-Key, which may be used instead.")
    ] = None


async def publish(call: Call, body: Publish) -> Response:
    answer = await call.engine.publish(
        call.tenant,
        body.key,
        b"null" if body.data is UNSET else bytes(body.data),
        headers=body.headers,
        idempotency_key=key_of(call, idempotency_key=body.idempotency_key),
    )
    return ok(json_of(shape_of_publish(answer)), replayed=answer.key_used and not answer.key_new)


async def list_all(call: Call) -> Response:
    limit = limit_in(call.query)
    found = await call.engine.events(call.tenant, call.query.get("key"), limit + 1)
    shapes = fitting(found[:limit], shape_of_event)
    return ok(json_of({"events": shapes, "more": len(shapes) < len(found)}))


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST",
        "/api/tenants/{tenant}/events",
        publish,
        "Publish an event",
        {OK: Reply("How many it woke, now or when the key was used first.", "Published")},
        policy="ACCEPTED",
        body=Publish,
        problems=("idempotency-key-reused", "payload-too-large"),
    ),
    Endpoint(
        "GET",
        "/api/tenants/{tenant}/events",
        list_all,
        "List recent events",
        {OK: Reply("The ones that are kept still.", "EventsPage")},
        query=(Parameter("key", "Only of this key.", {"type": "string"}), LIMIT),
    ),
)
