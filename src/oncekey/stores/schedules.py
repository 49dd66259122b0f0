"""Schedules, as steps of named SQL."""

from __future__ import annotations

from collections.abc import Callable, Generator
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
from oncekey.stores.requests import Row, Setting, Step, Steps

Answers = Generator[Step, list[Row], Any]


def _keep(keep: KeepSchedule, _: Setting) -> Answers:
    rows = yield "keep_schedule", {**keep._asdict(), "paused": int(keep.paused)}
    return _schedule_of(rows[0])


def _pause(pause: PauseSchedule, _: Setting) -> Answers:
    rows = yield "pause_schedule", {**pause._asdict(), "paused": int(pause.paused)}
    return _schedule_of(rows[0]) if rows else None


def _take(tick: TickTaken, _: Setting) -> Answers:
    return bool((yield "take_tick", tick._asdict()))


def _drop(drop: DropSchedule, _: Setting) -> Answers:
    return bool((yield "drop_schedule", drop._asdict()))


def _find(find: FindSchedule, _: Setting) -> Answers:
    rows = yield "find_schedule", find._asdict()
    return _schedule_of(rows[0]) if rows else None


def _list(query: ListSchedules, _: Setting) -> Answers:
    rows = yield "list_schedules", query._asdict()
    return [_schedule_of(row) for row in rows]


def _due(due: DueSchedules, _: Setting) -> Answers:
    tick, id_ = due.after
    values = {"now": due.now, "tick": tick, "id": id_, "limit": due.limit}
    rows = yield "due_schedules", values
    upcoming = yield "next_schedule", {"now": due.now}
    return DuePage([_schedule_of(row) for row in rows], upcoming[0][0])


def _schedule_of(row: Row) -> StoredSchedule:
    id_, tenant, spec, paused, next_at, last_at, updated_at = row
    return StoredSchedule(id_, tenant, spec, bool(paused), next_at, last_at, updated_at)


PLANS: dict[type, Callable[[Any, Setting], Steps]] = {
    KeepSchedule: _keep,
    PauseSchedule: _pause,
    TickTaken: _take,
    DropSchedule: _drop,
    FindSchedule: _find,
    ListSchedules: _list,
    DueSchedules: _due,
}
READS: frozenset[type] = frozenset({FindSchedule, ListSchedules, DueSchedules})
