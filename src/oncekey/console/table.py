"""Every page there is, and how they are named in the navigation."""

from __future__ import annotations

from typing import NamedTuple

from oncekey.console.pages import (
    apikeys,
    audit,
    deliveries,
    events,
    keys,
    overview,
    promises,
    retention,
    schedules,
    webhooks,
    workflows,
)
from oncekey.console.visit import Place


class Entry(NamedTuple):
    part: str
    """The first part of the path of its pages."""
    label: str


NAVIGATION = (
    Entry("", "Overview"),
    Entry("keys", "Keys"),
    Entry("workflows", "Workflows"),
    Entry("promises", "Promises"),
    Entry("events", "Events"),
    Entry("webhooks", "Webhooks"),
    Entry("deliveries", "Deliveries"),
    Entry("schedules", "Schedules"),
    Entry("retention", "Retention"),
    Entry("apikeys", "API keys"),
    Entry("audit", "Audit"),
)

# Where two paths fit, the first decides.
PLACES: tuple[Place, ...] = (
    *overview.PLACES,
    *keys.PLACES,
    *workflows.PLACES,
    *promises.PLACES,
    *events.PLACES,
    *webhooks.PLACES,
    *deliveries.PLACES,
    *schedules.PLACES,
    *retention.PLACES,
    *apikeys.PLACES,
    *audit.PLACES,
)
