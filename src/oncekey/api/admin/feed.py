"""The audit feed over HTTP: who changed what, and when."""

from __future__ import annotations

from oncekey.api.admin.noting import means_of
from oncekey.api.endpoint import Call, Endpoint, Parameter, Reply
from oncekey.api.pages import page_of
from oncekey.api.requests import BEFORE, LIMIT, limit_in
from oncekey.core.audit import AuditEntry, entry_number
from oncekey.core.errors import InvalidInput
from oncekey.durable.shapes import Shape, time_of
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK


async def list_all(call: Call) -> Response:
    limit, text = limit_in(call.query), call.query.get("before")
    before = None if text is None else entry_number(text)
    if text is not None and before is None:
        raise InvalidInput("before is no entry; send the next_before of the page above")
    found = await means_of(call).audit.list(
        call.query.get("tenant"), before=before, limit=limit + 1
    )
    return page_of("entries", "next_before", found, limit, _shape_of, lambda entry: entry.public_id)


def _shape_of(entry: AuditEntry) -> Shape:
    return {
        "id": entry.public_id,
        "at": time_of(entry.at),
        "actor": entry.actor,
        "action": entry.action,
        "target": entry.target,
        "tenant": entry.tenant,
        "details": entry.facts,
    }


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/admin/audit",
        list_all,
        "List what was changed, newest first",
        {OK: Reply("A page of entries.", "AuditPage")},
        access="admin",
        query=(
            Parameter("tenant", "Only what concerns this tenant.", {"type": "string"}),
            LIMIT,
            BEFORE,
        ),
    ),
)
