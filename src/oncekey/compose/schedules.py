"""Settings to objects: the schedules of the configuration, and the scheduler that runs them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, cast

from oncekey.config.schedule_settings import ScheduleSettings
from oncekey.config.settings import Settings
from oncekey.core.errors import ConfigurationError
from oncekey.core.ledger import Ledger
from oncekey.durable.engine import Engine
from oncekey.schedules import CallUrl, Cron, Every, Missed, Schedule, Scheduler, StartWorkflow


def scheduler_of(
    settings: Settings,
    ledger: Ledger,
    engine: Engine | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    **options: Any,
) -> Scheduler:
    """A scheduler for `async with`. Also one without a schedule of its own has work: it drops what
    the configuration declared before, and runs what others have declared.

    Raises `ConfigurationError` for a secret that is missing. `options` are those of `Scheduler`.
    """
    for each in settings.schedules:
        if each.secret_env is not None and not environ.get(each.secret_env):
            raise ConfigurationError(
                f"the schedule {each.id!r} is signed with the variable {each.secret_env}, "
                "which is not set"
            )
    schedules = schedules_of(settings)
    return Scheduler(ledger, engine, schedules, origin="configuration", environ=environ, **options)


def schedules_of(settings: Settings) -> tuple[Schedule, ...]:
    return tuple(_schedule_of(each) for each in settings.schedules)


def _schedule_of(each: ScheduleSettings) -> Schedule:
    timing = Cron(each.cron, each.timezone or "UTC") if each.cron else Every.of(each.every or 0)
    target = (
        _call_of(each.url, each) if each.url else StartWorkflow(each.workflow or "", each.input)
    )
    missed = cast(Missed, each.missed)
    return Schedule(each.id, timing, target, each.tenant, missed, each.paused)


def _call_of(url: str, each: ScheduleSettings) -> CallUrl:
    given = {"timeout": each.timeout, "attempts": each.attempts}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return CallUrl(url, each.data, each.secret, each.secret_env, **options)
