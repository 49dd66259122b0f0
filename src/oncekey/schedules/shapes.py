"""Schedules as JSON: the words that the command line and the API of admins both answer with."""

from __future__ import annotations

from oncekey.core.errors import ScheduleInvalid
from oncekey.core.model import Record, State
from oncekey.core.schedules import StoredSchedule
from oncekey.durable.shapes import Shape, time_of
from oncekey.schedules.dispatch import done_of
from oncekey.schedules.schedule import decode_spec
from oncekey.schedules.timing import timing_of

_UPCOMING = 5


def shape_of_schedule(stored: StoredSchedule) -> Shape:
    shape: Shape = {"id": stored.id, "tenant": stored.tenant}
    try:
        spec = decode_spec(stored)
        shape |= {
            "timing": spec.timing,
            "workflow": spec.workflow,
            "url": spec.url,
            "missed": spec.missed,
            "declared_by": spec.origin,
        }
    except ScheduleInvalid as error:
        shape["error"] = str(error)
    return shape | {
        "paused": stored.paused,
        "last_at": time_of(stored.last_at),
        "next_at": time_of(stored.next_at),
        "updated_at": time_of(stored.updated_at),
    }


def shape_of_whole(stored: StoredSchedule, last: Record | None, now: int) -> Shape:
    """With what a tick carries, what became of the last one, and those behind the next."""
    ended = ended_of(last)
    return {
        **shape_of_schedule(stored),
        "data": decode_spec(stored).data,
        "last_outcome": ended and {"state": ended[0], "text": ended[1]},
        "upcoming": [time_of(tick) for tick in upcoming_of(stored, now)],
    }


def upcoming_of(stored: StoredSchedule, now: int) -> list[int]:
    """The ticks behind the next one; none while it is paused."""
    ticks: list[int] = []
    timing, at = timing_of(decode_spec(stored).timing), max(stored.next_at, now)
    while len(ticks) < _UPCOMING and not stored.paused:
        at = timing.next_after(at)
        ticks.append(at)
    return ticks


def ended_of(record: Record | None) -> tuple[str, str] | None:
    """What became of the tick whose record this is; None when nobody knows."""
    if record is None or record.outcome is None:
        return None
    state = "failed" if record.state is State.FAILED else "succeeded"
    return state, done_of(record.outcome).text
