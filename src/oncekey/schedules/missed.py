"""Which tick is next, when some may have been missed. Pure: a timing and a moment in, a value out.

`all` makes up for every tick in turn, `last` for the last one only, `skip` for none: a tick that is
later than its grace is left out.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from oncekey.schedules.timing import Timing, last_until

Missed = Literal["skip", "last", "all"]
POLICIES: tuple[Missed, ...] = ("skip", "last", "all")

# Longer than a process takes to start and a lease to lapse: a tick whose process died is still had.
GRACE = 60_000


class Turn(NamedTuple):
    """What is to be done now: `tick`, if there is one, and then go on to `next_at`."""

    tick: int | None
    next_at: int
    dropped_from: int | None = None
    """The first of the ticks that are left out; the last is the one before `tick` or `next_at`."""


def turn_of(timing: Timing, missed: Missed, next_at: int, now: int) -> Turn:
    """`next_at` is where the store stands; when the timing was changed meanwhile, no tick of it."""
    first = timing.next_after(next_at - 1)
    if first > now:
        return Turn(None, first)
    tick = _chosen(timing, missed, first, now)
    dropped_from = first if tick > first else None
    if tick > now:
        return Turn(None, tick, dropped_from)
    return Turn(tick, timing.next_after(tick), dropped_from)


def _chosen(timing: Timing, missed: Missed, first: int, now: int) -> int:
    match missed:
        case "all":
            return first
        case "last":
            return last_until(timing, first, now)
        case "skip":
            return max(first, timing.next_after(now - GRACE - 1))
