"""API keys over HTTP for admins: listed, made and revoked. A secret is told once."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from oncekey.api.admin.noting import RULE, means_of, note, told_once
from oncekey.api.admin.settlers import api_key_of
from oncekey.api.admin.shapes import facts_of_api_key, shape_of_api_key, tenant_of_api_key
from oncekey.api.endpoint import Call, Endpoint, Parameter, Reply
from oncekey.api.pages import page_of
from oncekey.api.requests import BEFORE, LIMIT, Duration, before_in, limit_in, seconds_in
from oncekey.core.api_keys import ApiKey, is_id
from oncekey.core.errors import InvalidInput, NotFound
from oncekey.core.scope import PLATFORM_LEVEL, TENANT_LEVEL
from oncekey.durable.shapes import json_of, time_of
from oncekey.wire.problem import Response
from oncekey.wire.replies import CREATED, OK, created, ok


class CreateApiKey(msgspec.Struct, forbid_unknown_fields=True):
    """Whose key it is, and what for. One of an admin has neither tenant, project nor subject."""

    tenant: Annotated[str | None, Meta(description="`default` when it is left out.")] = None
    project: Annotated[
        str | None, Meta(description="Of the tenant itself when it is left out.")
    ] = None
    subject: Annotated[
        str | None, Meta(description="`type:id`; a service of its own when it is left out.")
    ] = None
    label: str = ""
    expires_in: Duration = None
    role: Annotated[
        Literal["caller", "admin"], Meta(description="Neither's key is good for the other's API.")
    ] = "caller"


async def list_all(call: Call) -> Response:
    limit = limit_in(call.query)
    before = before_in(call.query, lambda text: text if is_id(text) else None, "no id of a key")
    found = await means_of(call).callers.list(
        call.query.get("tenant"), before=before, limit=limit + 1
    )
    now = call.ledger.clock.now()
    return page_of(
        "api_keys",
        "next_before",
        found,
        limit,
        lambda key: shape_of_api_key(key, now),
        lambda key: key.id,
    )


async def create(call: Call, body: CreateApiKey) -> Response:
    if body.role == "admin" and (body.tenant or body.project or body.subject):
        raise InvalidInput(
            "an admin looks after every tenant; leave tenant, project and subject out"
        )
    key, secret = await means_of(call).callers.create(
        body.tenant or "default",
        project=body.project or (PLATFORM_LEVEL if body.role == "admin" else TENANT_LEVEL),
        subject=body.subject,
        label=body.label,
        expires_in=seconds_in("expires_in", body.expires_in),
        role=body.role,
    )
    # Nobody can use it before its secret is told, and that is not before this stands in the feed.
    await note(
        call,
        "apikey.create",
        key.id,
        tenant=tenant_of_api_key(key),
        **facts_of_api_key(key),
        expires_at=time_of(key.expires_at),
    )
    shape = {**shape_of_api_key(key, call.ledger.clock.now()), "secret": secret}
    return await told_once(call, created, shape)


async def revoke(call: Call) -> Response:
    known = await _found(call)
    tenant, facts = tenant_of_api_key(known), facts_of_api_key(known)
    await note(call, "apikey.revoke", known.id, tenant=tenant, **facts)
    key = await means_of(call).callers.revoke(known.id) or known
    return ok(json_of(shape_of_api_key(key, call.ledger.clock.now())))


async def whoami(call: Call) -> Response:
    assert call.caller is not None
    found = await api_key_of(call, call.caller.key_id)
    if found is None:
        raise NotFound
    return ok(json_of(shape_of_api_key(found, call.ledger.clock.now())))


async def _found(call: Call) -> ApiKey:
    found = await api_key_of(call, call.path["id"])
    if found is None:
        raise NotFound
    return found


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/admin/apikeys",
        list_all,
        "List API keys, newest first",
        {OK: Reply("A page of them, without their secrets.", "ApiKeysPage")},
        access="admin",
        query=(Parameter("tenant", "Only of this tenant.", {"type": "string"}), LIMIT, BEFORE),
    ),
    Endpoint(
        "POST",
        "/api/admin/apikeys",
        create,
        "Make an API key",
        {CREATED: Reply("With its secret, this once; null when it is asked again.", "NewApiKey")},
        policy="ACCEPTED",
        access="admin",
        body=CreateApiKey,
        rule=RULE,
    ),
    Endpoint(
        "POST",
        "/api/admin/apikeys/{id}/revoke",
        revoke,
        "Refuse an API key from now on",
        {OK: Reply("As it is now.", "ApiKey")},
        policy="ACCEPTED",
        access="admin",
        problems=("not-found",),
        rule=RULE,
    ),
    Endpoint(
        "GET",
        "/api/admin/whoami",
        whoami,
        "See the API key that this is asked with",
        {OK: Reply("As it is now.", "ApiKey")},
        access="admin",
        problems=("not-found",),
    ),
)
