"""Every endpoint of admins. Where two paths fit a request, the first decides."""

from __future__ import annotations

from functools import cache

from oncekey.api.admin import (
    apikeys,
    census,
    deliveries,
    events,
    feed,
    journal,
    keys,
    promises,
    pulse,
    retention,
    schedules,
    trying,
    webhooks,
    workflows,
)
from oncekey.api.admin.schemas import SCHEMAS
from oncekey.api.endpoint import Call, Endpoint, Reply
from oncekey.api.openapi import document_of
from oncekey.durable.shapes import json_of
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK, ok


async def describe(_: Call) -> Response:
    return ok(_document())


@cache
def _document() -> bytes:
    return json_of(document_of_admin())


def document_of_admin() -> dict[str, object]:
    return document_of(
        ENDPOINTS,
        SCHEMAS,
        title="OnceKey administration",
        summary="Keys, webhooks, API keys, retention, schedules and durable work of every tenant.",
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    *census.ENDPOINTS,
    *pulse.ENDPOINTS,
    *keys.ENDPOINTS,
    *webhooks.ENDPOINTS,
    *trying.ENDPOINTS,
    *deliveries.ENDPOINTS,
    *apikeys.ENDPOINTS,
    *retention.ENDPOINTS,
    *schedules.ENDPOINTS,
    *workflows.ENDPOINTS,
    *journal.ENDPOINTS,
    *promises.ENDPOINTS,
    *events.ENDPOINTS,
    *feed.ENDPOINTS,
    Endpoint(
        "GET",
        "/api/admin/openapi.json",
        describe,
        "This document",
        {OK: Reply("OpenAPI 3.1.", "Document")},
        access="admin",
    ),
)
