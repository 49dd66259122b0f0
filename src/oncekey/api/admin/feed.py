"""The audit feed over HTTP: who changed what, and when."""

from __future__ import annotations

from oncekey.api.admin.noting import means_of
from oncekey.api.admin.shapes import shape_of_audit_entry
from oncekey.api.endpoint import Call, Endpoint, Parameter, Reply
from oncekey.api.pages import page_of
from oncekey.api.requests import BEFORE, LIMIT, before_in, limit_in
from oncekey.core.audit import PREFIX, entry_number
from oncekey.core.identifier import text_of
from oncekey.core.looking import LOOK
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK


async def list_all(call: Call) -> Response:
    limit = limit_in(call.query)
    before = before_in(call.query, entry_number, "no entry")
    found = await means_of(call).audit.list(
        call.query.get("tenant"),
        before=before,
        limit=limit + 1,
        actor=call.query.get("actor"),
        action=call.query.get("action"),
        target=call.query.get("target"),
        look=LOOK,
    )
    return page_of(
        "entries",
        "next_before",
        found,
        limit,
        shape_of_audit_entry,
        lambda entry: entry.public_id,
        further=None if found.to is None else text_of(PREFIX, found.to),
    )


_TEXT = {"type": "string"}


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/admin/audit",
        list_all,
        "List what was changed, newest first",
        {OK: Reply("A page of entries.", "AuditPage")},
        access="admin",
        query=(
            Parameter("tenant", "Only what concerns this tenant.", _TEXT),
            Parameter("actor", "Only what this one did, as `cli:ann`.", _TEXT),
            Parameter("action", "Only what was done so, as `key.purge`.", _TEXT),
            Parameter("target", "Only what was done to this.", _TEXT),
            LIMIT,
            BEFORE,
        ),
    ),
)
