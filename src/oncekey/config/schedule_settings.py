"""Settings of `[[schedules]]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oncekey.config.field import hidden, setting
from oncekey.config.kinds import choice, duration, flag, json_value, secret, text, whole


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """Either `cron` or `every`, and either `workflow` or `url`. What is left out is as
    `schedules.Schedule` has it."""

    id: str = setting(text, "")
    cron: str | None = setting(text)
    timezone: str | None = setting(text)
    every: float | None = setting(duration)
    tenant: str = setting(text, "default")
    workflow: str | None = setting(text)
    input: Any = setting(json_value)
    url: str | None = setting(text)
    data: Any = setting(json_value)
    secret_env: str | None = setting(text)
    secret: str | None = hidden(secret)
    timeout: float | None = setting(duration)
    attempts: int | None = setting(whole(1, 70))
    missed: str = setting(choice("skip", "last", "all"), "last")
    paused: bool = setting(flag, False)
