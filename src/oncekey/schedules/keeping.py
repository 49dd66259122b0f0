"""Schedules in the store: declared, found, paused, resumed. Steps, for threads and loops alike."""

from __future__ import annotations

from collections.abc import Collection

from oncekey.core.clock import Clock
from oncekey.core.errors import NotFound, ScheduleInvalid
from oncekey.core.schedules import (
    DropSchedule,
    FindSchedule,
    KeepSchedule,
    ListSchedules,
    PauseSchedule,
    StoredSchedule,
)
from oncekey.core.steps import Steps
from oncekey.schedules.schedule import Origin, Schedule, decode_spec, encode_spec, spec_of
from oncekey.schedules.timing import timing_of

_PAGE = 100


def declare(schedules: Collection[Schedule], origin: Origin, clock: Clock) -> Steps[None]:
    """Keep what is declared. What the configuration declared before and does not now is dropped."""
    for each in schedules:
        yield _keep_of(each, origin, clock.now())
    if origin == "configuration":
        declared = {each.id for each in schedules}
        for stored in (yield from all_of()):
            if stored.id not in declared and _is_from(stored, origin):
                yield DropSchedule(stored.id)


def all_of(tenant: str | None = None) -> Steps[list[StoredSchedule]]:
    found: list[StoredSchedule] = []
    page: list[StoredSchedule] = yield ListSchedules("", tenant, _PAGE)
    while page:
        found += page
        page = yield ListSchedules(page[-1].id, tenant, _PAGE)
    return found


def find(schedule_id: str) -> Steps[StoredSchedule]:
    return _found((yield FindSchedule(schedule_id)), schedule_id)


def pause(schedule_id: str, clock: Clock) -> Steps[StoredSchedule]:
    """No tick is begun from now on."""
    return _found((yield PauseSchedule(schedule_id, True, 0, clock.now())), schedule_id)


def resume(schedule_id: str, clock: Clock) -> Steps[StoredSchedule]:
    """Go on with the first tick after now: those of the pause were not wanted."""
    stored = yield from find(schedule_id)
    now = clock.now()
    next_at = timing_of(decode_spec(stored).timing).next_after(now)
    return _found((yield PauseSchedule(schedule_id, False, next_at, now)), schedule_id)


def _found(stored: StoredSchedule | None, schedule_id: str) -> StoredSchedule:
    if stored is None:
        raise NotFound(f"there is no schedule {schedule_id!r}; see `oncekey schedules list`")
    return stored


def _is_from(stored: StoredSchedule, origin: Origin) -> bool:
    try:
        return decode_spec(stored).origin == origin
    except ScheduleInvalid:
        # Whoever wrote it may still be running; it is not ours to remove.
        return False


def _keep_of(schedule: Schedule, origin: Origin, now: int) -> KeepSchedule:
    return KeepSchedule(
        schedule.id,
        schedule.tenant,
        encode_spec(spec_of(schedule, origin)),
        schedule.paused,
        schedule.timing.next_after(now),
        now,
    )
