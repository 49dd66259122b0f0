"""Test deliveries: signed here as their provider would, and taken as every other is."""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated

import msgspec
from msgspec import Meta

from oncekey.api.admin.bounded import LARGEST
from oncekey.api.admin.noting import RULE, means_of, note
from oncekey.api.admin.sources import source_in
from oncekey.api.endpoint import Call, Endpoint, Reply
from oncekey.core.errors import InvalidInput
from oncekey.core.model import operation_id_of
from oncekey.durable.shapes import Shape, json_of
from oncekey.webhooks.receiver import Taken, Told
from oncekey.webhooks.samples import headers_of, sample_of
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK, ok

_LONGEST_KIND = 200


class SendDelivery(msgspec.Struct, forbid_unknown_fields=True):
    """What to deliver; the least that its provider sends when nothing is said."""

    body: Annotated[str | None, Meta(description="As the provider would send it.")] = None
    type: Annotated[
        str | None,
        Meta(description="What the body that is made says has happened: `charge.succeeded`."),
    ] = None


async def send(call: Call, body: SendDelivery) -> Response:
    source = await source_in(call)
    receiver = means_of(call).reception.receiver
    if receiver is None:
        raise InvalidInput("this process takes no deliveries")
    content = _content_of(call, body, source.provider)
    request = await receiver.signed(source, content, headers_of(source.provider, body.type))
    size = len(request.body)
    await note(call, "webhook.send", source.id, tenant=source.tenant, type=body.type, bytes=size)
    taken = await receiver.take(source, request)
    await receiver.written()
    return ok(json_of(_shape_of(taken, request.body)))


def _content_of(call: Call, body: SendDelivery, provider: str) -> bytes:
    if body.body is not None and body.type is not None:
        raise InvalidInput("type is for a body that is made here; send one of body and type")
    if body.type is not None and not 0 < len(body.type) <= _LONGEST_KIND:
        raise InvalidInput(f"type has 1 to {_LONGEST_KIND} characters")
    if body.type is not None and not body.type.isprintable():
        raise InvalidInput("type has characters that cannot be printed")
    if body.body is not None:
        return body.body.encode()
    return sample_of(provider, body.type, name=_name_of(call))


def _name_of(call: Call) -> str | None:
    """The same for the same request: one that is sent again after a crash is no other delivery."""
    if call.key is None:
        return None
    assert call.caller is not None
    return sha256(f"{call.caller.key_id}:{call.key}".encode()).hexdigest()[:16]


def _shape_of(taken: Taken, content: bytes) -> Shape:
    # A batch has several; a sample has one.
    told = taken.told[0] if taken.told else None
    return {
        "status": taken.response.status,
        "answer": taken.response.body[:LARGEST].decode(errors="replace"),
        "sent": content[:LARGEST].decode(errors="replace"),
        "items": len(taken.told),
        **_shape_of_told(told),
    }


def _shape_of_told(told: Told | None) -> Shape:
    number = None if told is None else told.operation
    return {
        "verdict": None if told is None else told.verdict,
        "reason": "" if told is None else told.reason,
        "identifier": "" if told is None else told.identifier,
        "operation_id": None if number is None else operation_id_of(number),
        "delivery_id": None if told is None else told.line,
    }


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST",
        "/api/admin/webhooks/{id}/send",
        send,
        "Deliver something to a webhook to try it: signed with its secret, and really acted on",
        {OK: Reply("What became of it, also when that is no success.", "Tried")},
        policy="ACCEPTED",
        access="admin",
        body=SendDelivery,
        problems=("not-found", "secrets-unavailable"),
        rule=RULE,
    ),
)
