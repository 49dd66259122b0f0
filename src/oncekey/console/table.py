"""Every page there is, and how they are named in the navigation."""

from __future__ import annotations

from typing import NamedTuple

from oncekey.console.pages import keys, overview
from oncekey.console.visit import Place


class Entry(NamedTuple):
    part: str
    """The first part of the path of its pages."""
    label: str


NAVIGATION = (
    Entry("", "Overview"),
    Entry("keys", "Keys"),
)

# Where two paths fit, the first decides.
PLACES: tuple[Place, ...] = (
    *overview.PLACES,
    *keys.PLACES,
)
