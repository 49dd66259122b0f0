"""At a glance: what is going on, what waits, and what needs somebody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from oncekey.console.timeline import age_of
from oncekey.console.visit import Page, Place, Visit

_FEW = 6
_MOST = 50


class Chart(NamedTuple):
    title: str
    member: str
    """Of a sample."""
    unit: str = ""
    tone: str = ""


CHARTS = (
    Chart("Requests", "requests", "/s"),
    Chart("Replays", "replays", "/s"),
    Chart("Conflicts", "conflicts", "/s", "warn"),
    Chart("Mismatches", "mismatches", "/s", "bad"),
    Chart("Refused", "refused", "/s", "warn"),
    Chart("Failed", "failed", "/s", "bad"),
    Chart("Latency, p50", "p50", " ms"),
    Chart("Latency, p95", "p95", " ms"),
    Chart("Latency, p99", "p99", " ms"),
    Chart("In flight", "in_flight"),
)


async def show(visit: Visit) -> Page:
    samples = (await visit.get("pulse"))["samples"]
    values = {
        "plots_of": [(each, _line(samples, each.member)) for each in CHARTS],
        "census": await visit.get("census"),
        "age_of": age_of,
        "in_flight": await _in_flight(visit),
        "stuck": (await visit.get("workflows", limit=_FEW))["workflows"],
        "refused": await _lost(visit),
    }
    return Page("overview.html", values)


async def _in_flight(visit: Visit) -> list[Any]:
    """Requests; what durable work holds is counted with it."""
    keys = (await visit.get("keys", state="in_progress", limit=_MOST))["keys"]
    return [each for each in keys if each["stands_for"] is None][:_FEW]


async def _lost(visit: Visit) -> list[Any]:
    """Deliveries that did nothing, newest first."""
    found: list[Any] = []
    for verdict in ("refused", "failed"):
        found += (await visit.get("deliveries", verdict=verdict, limit=_FEW))["deliveries"]
    return sorted(found, key=lambda each: each["id"], reverse=True)[:_FEW]


def _line(samples: Sequence[Any], member: str) -> list[float]:
    """What there is no value of is nothing."""
    return [each[member] or 0.0 for each in samples]


PLACES = (Place("", show),)
