"""Named events, told to whoever observes. Observers must be quick and never raise."""

from __future__ import annotations

from collections import Counter
from typing import Protocol


class Observer(Protocol):
    def __call__(self, event: str, endpoint: str) -> None: ...


class Tally:
    """Counts events by name; the observer when nothing else is asked for."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __call__(self, event: str, endpoint: str) -> None:
        self.counts[event] += 1
