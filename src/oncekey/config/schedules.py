"""What must hold within `[[schedules]]`, and between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oncekey.config.lines import Path
from oncekey.config.reader import Reader
from oncekey.config.schedule_settings import ScheduleSettings
from oncekey.core.errors import InvalidInput
from oncekey.core.scope import namespace_of
from oncekey.schedules.schedule import check_data, check_id, check_timeout, check_url
from oncekey.schedules.signing import check_secret
from oncekey.schedules.timing import Cron, Every

# What only makes sense beside another setting.
_COMPANIONS = {
    "timezone": "cron",
    "input": "workflow",
    "data": "url",
    "secret_env": "url",
    "secret": "url",
    "timeout": "url",
    "attempts": "url",
}


def check_schedules(schedules: tuple[ScheduleSettings, ...], reader: Reader) -> None:
    seen: dict[str, int] = {}
    for index, each in enumerate(schedules):
        schedule = _Checked(each, ("schedules", index), reader)
        schedule.check()
        if each.id and seen.setdefault(each.id, index) != index:
            message = f"schedules[{index}] and schedules[{seen[each.id]}] have the same id"
            reader.complain(("schedules", index, "id"), f"{message} {each.id!r}; keep one")


class _Checked:
    def __init__(self, settings: ScheduleSettings, path: Path, reader: Reader) -> None:
        self._settings = settings
        self._path = path
        self._reader = reader

    def check(self) -> None:
        each = self._settings
        if not each.id and not self._told("id"):
            self._reader.complain(self._path, 'a schedule needs an id, such as id = "nightly"')
        self._one_of("cron", "every", 'cron = "0 3 * * *" or every = "15m"')
        self._one_of("workflow", "url", 'workflow = "name" or url = "https://host/path"')
        if each.url is not None:
            self._one_of("secret_env", "secret", 'secret_env = "VARIABLE", to sign its calls with')
        self._check_companions()
        self._check_values()

    def _check_values(self) -> None:
        each = self._settings
        self._try("id", check_id, each.id or None)
        self._try("tenant", namespace_of, each.tenant)
        self._try("every", Every.of, each.every)
        self._try("url", check_url, each.url)
        self._try("secret", check_secret, each.secret)
        self._try("timeout", check_timeout, each.timeout)
        self._try("input", check_data, each.input)
        self._try("data", check_data, each.data)
        self._try("timezone", lambda zone: Cron("* * * * *", zone), each.timezone)
        if not self._told("timezone"):
            zone = each.timezone or "UTC"
            self._try("cron", lambda line: Cron(line, zone), each.cron)

    def _check_companions(self) -> None:
        for name, companion in _COMPANIONS.items():
            if self._has(name) and not self._has(companion) and not self._told(companion):
                message = f"{name} only goes with {companion}"
                self._reader.complain((*self._path, name), message)

    def _one_of(self, first: str, second: str, forms: str) -> None:
        if self._told(first) or self._told(second):
            return
        if self._has(first) and self._has(second):
            message = f"a schedule has {first} or {second}, not both"
            self._reader.complain((*self._path, second), message)
        elif not self._has(first) and not self._has(second):
            message = f"the schedule {self._settings.id!r} needs {forms}"
            self._reader.complain(self._path, message)

    def _try(self, name: str, check: Callable[[Any], Any], value: Any) -> None:
        if value is None or self._told(name):
            return
        try:
            check(value)
        except InvalidInput as error:
            self._reader.complain((*self._path, name), str(error))

    def _has(self, name: str) -> bool:
        return getattr(self._settings, name) is not None

    def _told(self, name: str) -> bool:
        """Whether it is wrong by itself; what follows from that is not worth a line."""
        return self._reader.is_bad((*self._path, name))
