"""How long a call may wait: as asked, a minute at most, and not beyond its own deadline."""

from __future__ import annotations

from oncekey.api.patience import LONGEST

# What is left of a deadline for the answer to travel in.
_TRAVEL = 1.0
_TRAVEL_SHARE = 0.2


def bounded(asked: float, seconds_left: float | None) -> float:
    """How long to wait, so that an answer comes before the deadline does."""
    if seconds_left is None:
        return min(asked, LONGEST)
    travel = min(_TRAVEL, seconds_left * _TRAVEL_SHARE)
    return max(0.0, min(asked, LONGEST, seconds_left - travel))
