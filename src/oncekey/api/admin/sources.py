"""Webhooks and their deliveries as JSON, for the API of admins and the command line. No secret is
in here, only when each is good."""

from __future__ import annotations

from oncekey.api.admin.noting import means_of
from oncekey.api.endpoint import Call
from oncekey.core.deliveries import LoggedDelivery
from oncekey.core.errors import NotFound
from oncekey.core.model import operation_id_of
from oncekey.durable.shapes import Shape, time_of
from oncekey.webhooks.naming import path_of
from oncekey.webhooks.secrets import Ring
from oncekey.webhooks.sources import Source


async def source_in(call: Call) -> Source:
    """The webhook of the path. Raises `NotFound`."""
    source = await means_of(call).sources.find(call.path["id"])
    if source is None:
        raise NotFound
    return source


def shape_of_source(source: Source) -> Shape:
    return {
        "id": source.id,
        "tenant": source.tenant,
        "project": source.project,
        "provider": source.provider,
        "then": str(source.then),
        "label": source.label,
        "repeats": source.repeats,
        "path": path_of(source),
        "created_at": time_of(source.created_at),
    }


def shape_of_ring(ring: Ring) -> list[Shape]:
    return [
        {"created_at": time_of(each.created_at or None), "until": time_of(each.until)}
        for each in ring
    ]


def shape_of_delivery(delivery: LoggedDelivery) -> Shape:
    number = delivery.operation
    return {
        "id": delivery.public_id,
        "at": time_of(delivery.at),
        "verdict": delivery.verdict,
        "identifier": delivery.identifier,
        "operation_id": None if number is None else operation_id_of(number),
        "reason": delivery.reason,
        "bytes": delivery.size,
        "times": delivery.times,
    }


def shape_of_any_delivery(delivery: LoggedDelivery, source: Source | None) -> Shape:
    """With whose it was, while its webhook is there."""
    return {
        **shape_of_delivery(delivery),
        "webhook": delivery.webhook,
        "tenant": None if source is None else source.tenant,
        "provider": None if source is None else source.provider,
    }
