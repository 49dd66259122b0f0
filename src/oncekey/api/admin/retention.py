"""Retention over HTTP for admins: how long outcomes are kept, by class, changed at run time."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta

from oncekey.api.admin.noting import RULE, means_of, note
from oncekey.api.admin.shapes import shapes_of_retention
from oncekey.api.endpoint import Call, Endpoint, Reply
from oncekey.api.requests import seconds_in
from oncekey.core.errors import InvalidInput
from oncekey.core.retention import check_class, check_seconds
from oncekey.durable.shapes import json_of
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK, ok


class SetRetention(msgspec.Struct, forbid_unknown_fields=True):
    """How long outcomes that are stored from now on are kept."""

    kept: Annotated[str | float, Meta(description="`30m`, `24h`, `7d`, or a number of seconds.")]


async def list_all(call: Call) -> Response:
    shapes = await asyncio.to_thread(shapes_of_retention, call.ledger, means_of(call).retention)
    return ok(json_of({"classes": shapes}))


async def change(call: Call, body: SetRetention) -> Response:
    name = check_class(call.path["class"])
    seconds = seconds_in("kept", body.kept)
    if seconds is None:
        raise InvalidInput("kept says how long; write 30m, 24h or 7d")
    seconds = check_seconds(seconds) / 1000
    before = (await asyncio.to_thread(call.ledger.retention)).get(name)
    await note(call, "retention.set", name, seconds=seconds, before=before)
    await asyncio.to_thread(call.ledger.set_retention, name, seconds)
    return ok(json_of({"class": name, "seconds": seconds, "from": "store"}))


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/admin/retention",
        list_all,
        "List the retention classes",
        {OK: Reply("All of them, as they are in force.", "Retention")},
        access="admin",
    ),
    Endpoint(
        "PUT",
        "/api/admin/retention/{class}",
        change,
        "Change how long outcomes of a class are kept, in every process",
        {OK: Reply("As it is from now on.", "RetentionClass")},
        policy="ACCEPTED",
        access="admin",
        body=SetRetention,
        rule=RULE,
    ),
)
