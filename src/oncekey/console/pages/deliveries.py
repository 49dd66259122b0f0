"""Deliveries: what came from providers, and the whole way of one, to find out where it ended."""

from __future__ import annotations

from typing import Any, get_args

from oncekey.console.chain import Around, chain_of, unnamed
from oncekey.console.lists import listed
from oncekey.console.timeline import failure_of
from oncekey.console.verdicts import was_taken
from oncekey.console.visit import Page, Place, Visit, part
from oncekey.core.deliveries import Verdict

FILTERS = ("identifier", "webhook", "tenant", "provider", "operation", "verdict")
_VERDICTS = ("", *get_args(Verdict))
_MOST_WEBHOOKS = 100


async def list_all(visit: Visit) -> Page:
    found = await listed(visit, "deliveries", _ask)
    values = {
        "found": found,
        "deliveries": found.rows,
        "filters": visit.query,
        "verdicts_known": _VERDICTS,
        "webhooks": await _webhooks(visit),
    }
    return Page("deliveries.html", values, found.status)


async def _webhooks(visit: Visit) -> list[tuple[str, str]] | None:
    """Ids and names to choose from; None where there are more than anybody looks through."""
    page = await visit.get("webhooks", limit=_MOST_WEBHOOKS)
    if page["next_before"] is not None:
        return None
    chosen = visit.query.get("webhook", "").strip()
    found = [(each["id"], _name_of(each)) for each in page["webhooks"]]
    # One that is gone has its deliveries still.
    gone = bool(chosen) and chosen not in dict(found)
    return [("", "any"), *found, *([(chosen, chosen)] if gone else [])]


def _name_of(webhook: Any) -> str:
    label = webhook["label"].strip() or webhook["id"]
    return f"{webhook['provider']} of {webhook['tenant']}: {label}"


async def _ask(visit: Visit) -> Any:
    return await visit.get("deliveries", **visit.asked(*FILTERS, "before"))


async def show(visit: Visit) -> Page:
    delivery = await visit.get(f"deliveries/{part(visit.path['id'])}")
    stages = chain_of(delivery, await _around(visit, delivery))
    # Links to events want to know whose they are.
    workflow = {"tenant": delivery["tenant"]}
    values = {"delivery": delivery, "stages": stages, "workflow": workflow}
    values["unnamed"] = unnamed(delivery)
    values["taken"] = was_taken(delivery["leads_to"])
    return Page("delivery.html", values)


async def _around(visit: Visit, delivery: dict[str, Any]) -> Around:
    """Whatever it led to may have gone meanwhile."""
    around = Around()
    for lead in delivery["leads_to"]:
        if lead["id"] is None or lead["state"] == "gone":
            continue
        place = part(lead["id"])
        if lead["kind"] == "promise":
            around = around._replace(promise=await visit.find(f"promises/{place}"))
        elif lead["state"] == "waiting":
            journal = await visit.find(f"workflows/{place}/journal", limit=1)
            around = around._replace(waits=[] if journal is None else journal["waits"])
        elif lead["state"] in {"failed", "paused"}:
            workflow = await visit.find(f"workflows/{place}") or {}
            failure = failure_of(workflow["error"]) if "error" in workflow else None
            around = around._replace(failure=failure)
    return around


PLACES = (
    Place("/deliveries", list_all),
    Place("/deliveries/{id}", show),
)
