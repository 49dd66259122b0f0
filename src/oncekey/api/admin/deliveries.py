"""Deliveries of all webhooks for admins: what came, where it led, and what to do where it did not.

From these alone an operator is to find out why something that a provider sent did not arrive."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import cast, get_args

import msgspec

from oncekey.api.admin.advice import advice_on
from oncekey.api.admin.leads import AWAITED, leads_of
from oncekey.api.admin.merging import further_in, merged
from oncekey.api.admin.noting import means_of
from oncekey.api.admin.records import shape_of_key
from oncekey.api.admin.sources import shape_of_any_delivery
from oncekey.api.endpoint import Call, Endpoint, Parameter, Reply
from oncekey.api.pages import page_of
from oncekey.api.requests import BEFORE, LIMIT, before_in, limit_in
from oncekey.core.deliveries import LoggedDelivery, Verdict, delivery_number, public_id_of
from oncekey.core.errors import InvalidInput, NotFound
from oncekey.core.looking import LOOK, Looked
from oncekey.core.model import Ref, number_of
from oncekey.core.ports import Found
from oncekey.durable.shapes import json_of
from oncekey.webhooks.naming import scope_of
from oncekey.webhooks.sources import Source
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK, ok

# More webhooks than a page can be put together of while somebody waits for it.
_MOST_WEBHOOKS = 100
_VERDICTS = get_args(Verdict)
_CAME_BEFORE_AS = re.compile(r'what is signed came before as (".*")')


async def list_all(call: Call) -> Response:
    limit = limit_in(call.query)
    found = await _page_of(call, limit + 1)
    webhooks = {each.webhook for each in found}
    sources = {each: await means_of(call).sources.find(each) for each in webhooks}
    return page_of(
        "deliveries",
        "next_before",
        found,
        limit,
        lambda delivery: shape_of_any_delivery(delivery, sources[delivery.webhook]),
        lambda delivery: delivery.public_id,
        **further_in(found, public_id_of),
    )


async def show(call: Call) -> Response:
    delivery = await _found(call)
    source = await means_of(call).sources.find(delivery.webhook)
    key = await _key_of(call, delivery, source)
    leads = [] if key is None else await leads_of(call, key)
    awaited = any(each["state"] == AWAITED for each in leads)
    shape = {
        **shape_of_any_delivery(delivery, source),
        "then": None if source is None else str(source.then),
        "key": None if key is None else shape_of_key(key),
        "leads_to": leads,
        "advice": advice_on(delivery.verdict, delivery.reason, awaited=awaited),
    }
    return ok(json_of(shape))


async def _page_of(call: Call, limit: int) -> Looked[LoggedDelivery]:
    page_to = partial(
        means_of(call).deliveries.list,
        before=before_in(call.query, delivery_number, "no delivery"),
        limit=limit,
        verdict=_verdict_in(call),
        operation=_operation_in(call),
        identifier=call.query.get("identifier"),
        look=LOOK,
    )
    webhook = call.query.get("webhook")
    if "tenant" not in call.query and "provider" not in call.query:
        return await page_to(webhook)
    meant = [each.id for each in await _webhooks_in(call) if webhook in {None, each.id}]
    return merged(await asyncio.gather(*map(page_to, meant)))


async def _webhooks_in(call: Call) -> list[Source]:
    """Those of the tenant and the provider that are asked for."""
    provider, sources = call.query.get("provider"), means_of(call).sources
    # Providers have no capital letters here, though they write themselves with some.
    named = None if provider is None else provider.lower()
    found: list[Source] = []
    before: str | None = None
    while page := await sources.list(call.query.get("tenant"), before=before):
        found += (each for each in page if named in {None, each.provider})
        before = page[-1].id
        if len(found) > _MOST_WEBHOOKS:
            raise InvalidInput(
                f"these are more than {_MOST_WEBHOOKS} webhooks; name one, or tenant and provider"
            )
    return found


def _verdict_in(call: Call) -> Verdict | None:
    verdict = call.query.get("verdict")
    if verdict is not None and verdict not in _VERDICTS:
        raise InvalidInput(f"verdict {verdict[:100]!r} is not known; there are: {_KNOWN}")
    return cast("Verdict | None", verdict)


def _operation_in(call: Call) -> int | None:
    text = call.query.get("operation")
    number = None if text is None else number_of(text)
    if text is not None and number is None:
        raise InvalidInput("operation is no operation id, which is op_ and 16 digits")
    return number


async def _found(call: Call) -> LoggedDelivery:
    number = delivery_number(call.path["id"])
    if number is not None:
        # The newest of those below the next one.
        for delivery in await means_of(call).deliveries.list(before=number + 1, limit=1):
            if delivery.id == number:
                return delivery
    raise NotFound("there is no such delivery, or it is not kept any more")


async def _key_of(call: Call, delivery: LoggedDelivery, source: Source | None) -> Found | None:
    """The key it was, or was a duplicate of, also under another name; while it is kept."""
    if delivery.operation is not None:
        return await call.ledger.alook(delivery.operation)
    named = _CAME_BEFORE_AS.fullmatch(delivery.reason)
    if named is None or source is None:
        return None
    try:
        key = msgspec.json.decode(named[1].encode(), type=str)
    except msgspec.MsgspecError:
        return None
    return await call.ledger.alook(Ref(scope_of(source), key))


_KNOWN = ", ".join(_VERDICTS)
_TEXT = {"type": "string"}

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/admin/deliveries",
        list_all,
        "List deliveries to all webhooks, newest first",
        {OK: Reply("What came, and what became of it.", "AnyDeliveriesPage")},
        access="admin",
        query=(
            Parameter("webhook", "Only to this webhook.", _TEXT),
            Parameter("tenant", "Only to webhooks of this tenant that are there still.", _TEXT),
            Parameter("provider", "Only to webhooks of this provider, in any case.", _TEXT),
            Parameter("verdict", "Only of this verdict.", {**_TEXT, "enum": list(_VERDICTS)}),
            Parameter("operation", "Only those that were this operation id.", _TEXT),
            Parameter("identifier", "Only with this identifier of the provider's.", _TEXT),
            LIMIT,
            BEFORE,
        ),
    ),
    Endpoint(
        "GET",
        "/api/admin/deliveries/{id}",
        show,
        "See a delivery, its key, what followed it, and what to do where nothing did",
        {OK: Reply("As it is now.", "WholeDelivery")},
        access="admin",
        problems=("not-found",),
    ),
)
