"""How much there is of what, over HTTP: counted now and then, and told at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oncekey.api.admin.noting import means_of
from oncekey.api.endpoint import Call, Endpoint, Reply
from oncekey.core.census import Counted
from oncekey.core.errors import StoreUnavailable
from oncekey.durable.shapes import Shape, json_of, time_of
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK, ok


async def show(call: Call) -> Response:
    counted = await means_of(call).censuses.latest()
    if counted is None:
        raise StoreUnavailable("the store did not answer when it was counted; try again")
    return ok(json_of(shape_of(counted)))


def shape_of(counted: Counted) -> Shape:
    return {
        "counted_at": time_of(counted.at),
        "claims_in_progress": counted.claims_in_progress,
        "oldest_claim_at": time_of(counted.oldest_claim_at),
        "workflows": _named(counted.executions),
        "tasks": _named(counted.tasks),
        "oldest_waiting_at": time_of(counted.oldest_waiting_at),
        "promises": _named(counted.promises),
        "oldest_pending_at": time_of(counted.oldest_pending_at),
    }


def _named(counts: Mapping[Any, int]) -> dict[str, int]:
    """By the words that lists use."""
    return {kind.name.lower(): number for kind, number in counts.items()}


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/admin/census",
        show,
        "See how much there is of what, counted at most every five seconds",
        {OK: Reply("As it was last counted.", "Census")},
        access="admin",
    ),
)
