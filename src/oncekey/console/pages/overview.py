"""At a glance: what is going on, what waits, and what needs somebody."""

from __future__ import annotations

from oncekey.console.visit import Page, Place, Visit


async def show(visit: Visit) -> Page:
    in_flight = await visit.get("keys", state="in_progress", limit=8)
    stuck = await visit.get("workflows", limit=8)
    values = {"in_flight": in_flight["keys"], "stuck": stuck["workflows"]}
    return Page("overview.html", values)


PLACES = (Place("", show),)
