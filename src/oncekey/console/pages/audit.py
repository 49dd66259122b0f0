"""The audit feed: who changed what, and when, with a way to what it is about."""

from __future__ import annotations

from typing import Any

from oncekey.console.lists import listed
from oncekey.console.visit import Page, Place, Visit

FILTERS = ("tenant", "actor", "action", "target")


async def list_all(visit: Visit) -> Page:
    found = await listed(visit, "entries", _ask)
    return Page("audit.html", {"found": found, "filters": visit.query}, found.status)


async def _ask(visit: Visit) -> Any:
    return await visit.get("audit", **visit.asked(*FILTERS, "before"))


PLACES = (Place("/audit", list_all),)
