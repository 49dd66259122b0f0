"""Webhooks over HTTP for admins: made, seen, changed, given other secrets, and deleted. A secret
that is made here is told once; none is ever shown again."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Literal
from urllib.parse import quote

import msgspec
from msgspec import Meta

from oncekey.api.admin.noting import RULE, means_of, note, told_once
from oncekey.api.admin.sources import shape_of_delivery, shape_of_ring, shape_of_source, source_in
from oncekey.api.endpoint import Call, Endpoint, Parameter, Reply
from oncekey.api.pages import page_of
from oncekey.api.requests import BEFORE, LIMIT, before_in, limit_in, seconds_in
from oncekey.core.api_keys import check_label
from oncekey.core.deliveries import delivery_number
from oncekey.core.errors import InvalidInput, NotFound, SecretsUnavailable
from oncekey.core.scope import TENANT_LEVEL
from oncekey.durable.shapes import Shape, json_of
from oncekey.webhooks.acting import check_then
from oncekey.webhooks.provider import Provider
from oncekey.webhooks.secrets import check_secret
from oncekey.webhooks.sources import OVERLAP, Source
from oncekey.webhooks.then import Then, parse_then
from oncekey.wire.problem import Response
from oncekey.wire.replies import CREATED, OK, created, ok

Follows = Annotated[
    str,
    Meta(
        description="What follows a delivery: `forward:/path`, `event:CEL`, `resolve:CEL` or "
        "`workflow:NAME`."
    ),
]
Given = Annotated[
    str | None, Meta(description="The provider's own; made, and told once, when it is left out.")
]
Repeats = Annotated[
    Literal["refuse", "allow"],
    Meta(description="A body that comes again under another identifier that is not signed."),
]


class CreateWebhook(msgspec.Struct, forbid_unknown_fields=True):
    """Who delivers, to whom, and what follows."""

    provider: str
    then: Follows
    tenant: str = "default"
    project: Annotated[str, Meta(description="`_tenant` for none.")] = TENANT_LEVEL
    secret: Given = None
    label: str = ""
    repeats: Repeats = "refuse"


class RotateWebhook(msgspec.Struct, forbid_unknown_fields=True):
    """The next secret."""

    secret: Given = None
    overlap: Annotated[
        str | float | None,
        Meta(description="How long the secrets there are stay good; 24 hours when left out."),
    ] = None


class ChangeWebhook(msgspec.Struct, forbid_unknown_fields=True):
    """What is left out stays as it is."""

    then: Follows | None = None
    label: str | None = None
    repeats: Repeats | None = None


async def list_all(call: Call) -> Response:
    limit, before = limit_in(call.query), call.query.get("before")
    try:
        found = await means_of(call).sources.list(
            call.query.get("tenant"), before=before, limit=limit + 1
        )
    except NotFound:
        raise InvalidInput("before is no webhook any more; begin with the first page") from None
    return page_of(
        "webhooks", "next_before", found, limit, shape_of_source, lambda source: source.id
    )


async def show(call: Call) -> Response:
    source = await source_in(call)
    shape: Shape = shape_of_source(source)
    try:
        shape["secrets"] = shape_of_ring(await means_of(call).sources.ring(source))
    except SecretsUnavailable:
        shape["secrets"] = None
    return ok(json_of(shape))


async def create(call: Call, body: CreateWebhook) -> Response:
    then, provider = _then_of(body.then), _provider_of(call, body.provider)
    source, made = await _make(call, body, then, provider)
    await note(
        call,
        "webhook.create",
        source.id,
        tenant=source.tenant,
        project=source.project,
        provider=source.provider,
        then=str(source.then),
        label=source.label,
    )
    shape = {**shape_of_source(source), "secret": made}
    place = f"{quote(call.root)}/api/admin/webhooks/{source.id}"
    return await told_once(call, lambda answer: created(answer, place), shape)


async def rotate(call: Call, body: RotateWebhook) -> Response:
    source = await source_in(call)
    made = None
    if body.secret is None:
        made = await _made_by(_provider_of(call, source.provider))
    secret = check_secret(body.secret or made or "")
    overlap = _overlap_of(body.overlap)
    await note(call, "webhook.rotate", source.id, tenant=source.tenant, overlap=overlap)
    rotated = await means_of(call).sources.rotate(source.id, secret, overlap=overlap)
    return await told_once(call, ok, {**shape_of_source(rotated), "secret": made})


async def change(call: Call, body: ChangeWebhook) -> Response:
    source = await source_in(call)
    then = None if body.then is None else _then_of(body.then)
    if body.label is not None:
        check_label(body.label)
    changes = {"then": body.then, "label": body.label, "repeats": body.repeats}
    await note(call, "webhook.change", source.id, tenant=source.tenant, **changes)
    changed = await means_of(call).sources.change(
        source.id, then=then, label=body.label, repeats=body.repeats
    )
    return ok(json_of(shape_of_source(changed)))


async def delete(call: Call) -> Response:
    source = await source_in(call)
    await note(call, "webhook.delete", source.id, tenant=source.tenant, provider=source.provider)
    if not await means_of(call).sources.delete(source.id):
        raise NotFound
    return ok(json_of(shape_of_source(source)))


async def deliveries(call: Call) -> Response:
    source = await source_in(call)
    limit = limit_in(call.query)
    before = before_in(call.query, delivery_number, "no delivery")
    found = await means_of(call).deliveries.list(source.id, before=before, limit=limit + 1)
    return page_of(
        "deliveries",
        "next_before",
        found,
        limit,
        shape_of_delivery,
        lambda delivery: delivery.public_id,
    )


async def _make(
    call: Call, body: CreateWebhook, then: Then, provider: Provider
) -> tuple[Source, str | None]:
    """The webhook, and the secret that was made for it if none was given or there."""
    create = partial(
        means_of(call).sources.create,
        body.tenant,
        body.project,
        body.provider,
        then,
        label=body.label,
        repeats=body.repeats,
    )
    if body.secret is not None:
        return await create(secret=body.secret), None
    try:
        # A vault may have it already.
        return await create(secret=None), None
    except InvalidInput:
        made = await _made_by(provider)
        return await create(secret=made), made


async def _made_by(provider: Provider) -> str:
    """In a thread: for some it is a pair of keys, which takes its time."""
    return await asyncio.to_thread(provider.new_secret)


def _then_of(text: str) -> Then:
    then = parse_then(text)
    check_then(then)
    return then


def _provider_of(call: Call, name: str) -> Provider:
    providers = means_of(call).providers
    if name not in providers:
        known = ", ".join(sorted(providers))
        raise InvalidInput(f"there is no provider {name[:63]!r}; there are: {known}")
    return providers[name]


def _overlap_of(given: str | float | None) -> float:
    if given in {0, "0", "0s"}:
        return 0.0
    seconds = seconds_in("overlap", given)
    return OVERLAP if seconds is None else seconds


_ONE = "/api/admin/webhooks/{id}"
_NEW = "With the secret that was made, this once; null when it is asked again."

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/admin/webhooks",
        list_all,
        "List webhooks, newest first",
        {OK: Reply("A page of them, without their secrets.", "WebhooksPage")},
        access="admin",
        query=(Parameter("tenant", "Only of this tenant.", {"type": "string"}), LIMIT, BEFORE),
    ),
    Endpoint(
        "POST",
        "/api/admin/webhooks",
        create,
        "Make a webhook",
        {CREATED: Reply(_NEW, "NewWebhook")},
        policy="ACCEPTED",
        access="admin",
        body=CreateWebhook,
        problems=("condition-invalid", "secrets-unavailable"),
        rule=RULE,
    ),
    Endpoint(
        "GET",
        _ONE,
        show,
        "See a webhook, and how many secrets it has",
        {OK: Reply("As it is now.", "WholeWebhook")},
        access="admin",
        problems=("not-found",),
    ),
    Endpoint(
        "PATCH",
        _ONE,
        change,
        "Change what follows its deliveries, its label or what becomes of repeated bodies",
        {OK: Reply("As it is now.", "Webhook")},
        policy="ACCEPTED",
        access="admin",
        body=ChangeWebhook,
        problems=("not-found", "condition-invalid"),
        rule=RULE,
    ),
    Endpoint(
        "DELETE",
        _ONE,
        delete,
        "Delete a webhook: its deliveries are refused from now on",
        {OK: Reply("As it was.", "Webhook")},
        policy="ACCEPTED",
        access="admin",
        problems=("not-found", "secrets-unavailable"),
        rule=RULE,
    ),
    Endpoint(
        "POST",
        f"{_ONE}/rotate",
        rotate,
        "Give a webhook its next secret",
        {OK: Reply(_NEW, "NewWebhook")},
        policy="ACCEPTED",
        access="admin",
        body=RotateWebhook,
        problems=("not-found", "secrets-unavailable"),
        rule=RULE,
    ),
    Endpoint(
        "GET",
        f"{_ONE}/deliveries",
        deliveries,
        "List the deliveries of a webhook, newest first",
        {OK: Reply("What came, and what became of it.", "DeliveriesPage")},
        access="admin",
        query=(LIMIT, BEFORE),
        problems=("not-found",),
    ),
)
