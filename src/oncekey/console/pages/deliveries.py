"""Deliveries: what came from providers, and the whole way of one, to find out where it ended."""

from __future__ import annotations

from typing import Any, get_args

from oncekey.console.chain import Around, chain_of, unnamed
from oncekey.console.lists import listed
from oncekey.console.visit import Page, Place, Refused, Visit, part
from oncekey.core.deliveries import Verdict

FILTERS = ("identifier", "webhook", "tenant", "provider", "operation", "verdict")
_VERDICTS = ("", *get_args(Verdict))


async def list_all(visit: Visit) -> Page:
    found = await listed(visit, "deliveries", _ask)
    values = {
        "found": found,
        "deliveries": found.rows,
        "filters": visit.query,
        "verdicts_known": _VERDICTS,
    }
    return Page("deliveries.html", values, found.status)


async def _ask(visit: Visit) -> Any:
    return await visit.get("deliveries", **visit.asked(*FILTERS, "before"))


async def show(visit: Visit) -> Page:
    delivery = await visit.get(f"deliveries/{part(visit.path['id'])}")
    stages = chain_of(delivery, await _around(visit, delivery))
    # Links to events want to know whose they are.
    workflow = {"tenant": delivery["tenant"]}
    values = {"delivery": delivery, "stages": stages, "workflow": workflow}
    values["unnamed"] = unnamed(delivery)
    return Page("delivery.html", values)


async def _around(visit: Visit, delivery: dict[str, Any]) -> Around:
    promise: dict[str, Any] | None = None
    waits: list[dict[str, Any]] = []
    for lead in delivery["leads_to"]:
        if lead["id"] is None or lead["state"] == "gone":
            continue
        if lead["kind"] == "promise":
            promise = await _if_there(visit, f"promises/{part(lead['id'])}")
        elif lead["state"] == "waiting":
            journal = await _if_there(visit, f"workflows/{part(lead['id'])}/journal", limit=1)
            waits = [] if journal is None else journal["waits"]
    return Around(promise, waits)


async def _if_there(visit: Visit, path: str, **query: object) -> Any:
    """It may have gone meanwhile."""
    try:
        return await visit.get(path, **query)
    except Refused as refused:
        if refused.status == 404:
            return None
        raise


PLACES = (
    Place("/deliveries", list_all),
    Place("/deliveries/{id}", show),
)
