"""The audit feed over HTTP: who changed what, and when."""

from __future__ import annotations

from oncekey.api.admin.noting import means_of
from oncekey.api.admin.shapes import shape_of_audit_entry
from oncekey.api.endpoint import Call, Endpoint, Parameter, Reply
from oncekey.api.pages import page_of
from oncekey.api.requests import BEFORE, LIMIT, before_in, limit_in
from oncekey.core.audit import entry_number
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK


async def list_all(call: Call) -> Response:
    limit = limit_in(call.query)
    before = before_in(call.query, entry_number, "no entry")
    found = await means_of(call).audit.list(
        call.query.get("tenant"), before=before, limit=limit + 1
    )
    return page_of(
        "entries",
        "next_before",
        found,
        limit,
        shape_of_audit_entry,
        lambda entry: entry.public_id,
    )


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
