"""What schedules ask of a store. A tick is taken by whoever still sees it as the next one."""

from __future__ import annotations

from typing import NamedTuple


class StoredSchedule(NamedTuple):
    """A schedule as read. `spec` is JSON; of its fields a store knows `timing` and `paused`."""

    id: str
    tenant: str
    spec: str
    paused: bool
    next_at: int
    """The next tick that nobody has taken."""
    last_at: int | None
    """The last tick that had its effect."""
    updated_at: int


class KeepSchedule(NamedTuple):
    """Make a schedule, or change what is declared of it. Answer: StoredSchedule, as it is then.

    Its next tick and whether it is paused change only when `timing` or `paused` in the spec do:
    declaring it once more neither forgets a tick that is due nor wakes what an operator paused.
    """

    id: str
    tenant: str
    spec: str
    paused: bool
    next_at: int
    now: int


class PauseSchedule(NamedTuple):
    """Stop a schedule, or let it go on. Answer: StoredSchedule or None.

    `next_at` is the next tick of one that goes on; of one that was not paused it changes nothing.
    """

    id: str
    paused: bool
    next_at: int
    now: int


class TickTaken(NamedTuple):
    """Go on to the next tick. Answer: whether `seen` was the next one still.

    `last_at` is the tick that had its effect, None when there was none.
    """

    id: str
    seen: int
    next_at: int
    last_at: int | None
    now: int


class DropSchedule(NamedTuple):
    """Answer: whether there was one."""

    id: str


class FindSchedule(NamedTuple):
    """Answer: StoredSchedule or None."""

    id: str


class ListSchedules(NamedTuple):
    """A page in the order of ids, of those behind `after`. Answer: list[StoredSchedule]."""

    after: str = ""
    tenant: str | None = None
    limit: int = 100


class DueSchedules(NamedTuple):
    """A page of schedules that are not paused and whose next tick has come, oldest tick first.

    `after` is the tick and id of the last one of the page before. Answer: DuePage.
    """

    now: int
    after: tuple[int, str] = (-1, "")
    limit: int = 100


class DuePage(NamedTuple):
    schedules: list[StoredSchedule]
    next_at: int | None
    """When the first tick after now comes."""
