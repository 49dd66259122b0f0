"""The oracle of schedules."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from oncekey.core.schedules import (
    DropSchedule,
    DuePage,
    DueSchedules,
    FindSchedule,
    KeepSchedule,
    ListSchedules,
    PauseSchedule,
    StoredSchedule,
    TickTaken,
)


class MemorySchedules:
    def __init__(self, kept: dict[str, StoredSchedule] | None = None) -> None:
        self._kept = {} if kept is None else kept

    def answers(self) -> dict[type, Callable[[Any], Any]]:
        return {
            KeepSchedule: self._keep,
            PauseSchedule: self._pause,
            TickTaken: self._take,
            DropSchedule: lambda drop: self._kept.pop(drop.id, None) is not None,
            FindSchedule: lambda find: self._kept.get(find.id),
            ListSchedules: self._list,
            DueSchedules: self._due,
        }

    def _keep(self, keep: KeepSchedule) -> StoredSchedule:
        id_, tenant, spec, paused, next_at, now = keep
        last_at = None
        old = self._kept.get(id_)
        if old is not None:
            last_at = old.last_at
            before, after = json.loads(old.spec), json.loads(spec)
            if before["paused"] == after["paused"]:
                paused = old.paused
                if before["timing"] == after["timing"]:
                    next_at = old.next_at
        return self._put(StoredSchedule(id_, tenant, spec, paused, next_at, last_at, now))

    def _pause(self, pause: PauseSchedule) -> StoredSchedule | None:
        old = self._kept.get(pause.id)
        if old is None:
            return None
        next_at = pause.next_at if old.paused and not pause.paused else old.next_at
        return self._put(old._replace(paused=pause.paused, next_at=next_at, updated_at=pause.now))

    def _take(self, tick: TickTaken) -> bool:
        old = self._kept.get(tick.id)
        if old is None or old.next_at != tick.seen:
            return False
        last_at = old.last_at if tick.last_at is None else tick.last_at
        self._put(old._replace(next_at=tick.next_at, last_at=last_at, updated_at=tick.now))
        return True

    def _list(self, query: ListSchedules) -> list[StoredSchedule]:
        found = [
            each
            for each in self._kept.values()
            if each.id > query.after and query.tenant in {None, each.tenant}
        ]
        return sorted(found)[: query.limit]

    def _due(self, due: DueSchedules) -> DuePage:
        running = [each for each in self._kept.values() if not each.paused]
        ordered = sorted(running, key=lambda each: (each.next_at, each.id))
        found = [
            each
            for each in ordered
            if each.next_at <= due.now and (each.next_at, each.id) > due.after
        ]
        later = [each.next_at for each in ordered if each.next_at > due.now]
        return DuePage(found[: due.limit], min(later, default=None))

    def _put(self, schedule: StoredSchedule) -> StoredSchedule:
        self._kept[schedule.id] = schedule
        return schedule
