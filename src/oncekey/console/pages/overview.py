"""At a glance: what is going on, what waits, and what needs somebody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from oncekey.console.visit import Page, Place, Visit

_FEW = 6


class Chart(NamedTuple):
    title: str
    member: str
    """Of a sample."""
    unit: str = ""
    tone: str = ""


CHARTS = (
    Chart("Requests", "requests", "/s"),
    Chart("Replays", "replays", "/s"),
    Chart("Conflicts (409)", "conflicts", "/s", "warn"),
    Chart("Mismatches (422)", "mismatches", "/s", "bad"),
    Chart("Refused", "refused", "/s", "warn"),
    Chart("Failed", "failed", "/s", "bad"),
    Chart("Latency, median", "p50", " ms"),
    Chart("Latency, 99 of 100", "p99", " ms"),
    Chart("In flight", "in_flight"),
)


async def show(visit: Visit) -> Page:
    samples = (await visit.get("pulse"))["samples"]
    values = {
        "plots_of": [(each, _line(samples, each.member)) for each in CHARTS],
        "census": await visit.get("census"),
        "in_flight": (await visit.get("keys", state="in_progress", limit=_FEW))["keys"],
        "stuck": (await visit.get("workflows", limit=_FEW))["workflows"],
        "refused": (await visit.get("deliveries", verdict="refused", limit=_FEW))["deliveries"],
    }
    return Page("overview.html", values)


def _line(samples: Sequence[Any], member: str) -> list[float]:
    """What there is no value of is nothing."""
    return [each[member] or 0.0 for each in samples]


PLACES = (Place("", show),)
