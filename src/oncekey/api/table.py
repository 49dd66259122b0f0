"""Every endpoint of the API. Where two paths fit a request, the first decides."""

from __future__ import annotations

from functools import cache

from oncekey.api import events, health, promises, workflows
from oncekey.api.endpoint import Call, Endpoint, Reply
from oncekey.api.openapi import document_of
from oncekey.durable.shapes import json_of
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK, ok


async def describe(_: Call) -> Response:
    return ok(_document())


@cache
def _document() -> bytes:
    return json_of(document_of(ENDPOINTS))


ENDPOINTS: tuple[Endpoint, ...] = (
    *workflows.ENDPOINTS,
    *promises.ENDPOINTS,
    *events.ENDPOINTS,
    *health.ENDPOINTS,
    Endpoint(
        "GET",
        "/openapi.json",
        describe,
        "This document",
        {OK: Reply("OpenAPI 3.1.", "Document")},
        access="open",
    ),
)
