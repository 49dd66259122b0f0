"""Retention classes: how long a settled outcome is kept, by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress

from oncekey.core.errors import InvalidInput, RetentionUnknown

DEFAULT_CLASSES: Mapping[str, int] = {
    "interactive": 24 * 3600,
    "webhook": 7 * 24 * 3600,
    "financial": 7 * 24 * 3600,
}
MAX_SECONDS = 10 * 365 * 24 * 3600

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|w)")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


class Retention:
    """The classes in force. A change is seen by the next settle, without a restart."""

    def __init__(self, classes: Mapping[str, float] | None = None) -> None:
        self._milliseconds: dict[str, int] = {}
        self.update({**DEFAULT_CLASSES, **(classes or {})})

    def update(self, classes: Mapping[str, float]) -> None:
        for name, seconds in classes.items():
            self._milliseconds[check_class(name)] = check_seconds(seconds)

    def learn(self, classes: Mapping[str, float]) -> None:
        """What the store holds, as far as it makes sense: no row in it may stop a process."""
        for name, seconds in classes.items():
            with suppress(InvalidInput):
                self.update({name: seconds})

    def __contains__(self, name: str) -> bool:
        return name in self._milliseconds

    def milliseconds(self, name: str) -> int:
        try:
            return self._milliseconds[name]
        except KeyError:
            known = ", ".join(sorted(self._milliseconds))
            raise RetentionUnknown(f"no retention class {name!r}; there are: {known}") from None

    def seconds(self) -> dict[str, float]:
        return {name: value / 1000 for name, value in sorted(self._milliseconds.items())}


def check_class(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"retention class {name!r} must be a-z, 0-9, '-' or '_', 32 at most")
    return name


def check_seconds(seconds: float) -> int:
    """Milliseconds, when `seconds` is a time an answer can be kept."""
    if not 0 < seconds <= MAX_SECONDS:
        raise InvalidInput(f"a retention of {seconds} s is not between 0 and ten years")
    return max(1, round(seconds * 1000))


def seconds_of(text: str) -> float:
    """Seconds in a duration such as `24h`, `7d`, `90s` or `1d12h`."""
    rest, total = text.strip().lower(), 0.0
    while found := _DURATION.match(rest):
        total += float(found[1]) * _UNITS[found[2]]
        rest = rest[found.end() :]
    if rest or not total:
        raise InvalidInput(f"{text!r} is not a duration; write 30s, 15m, 24h, 7d or 1d12h")
    return total


def duration_of(seconds: float) -> str:
    """The shortest exact way to write a duration: 86400 is `1d`, 5400 is `90m`."""
    for unit in ("d", "h", "m", "s"):
        count, rest = divmod(seconds, _UNITS[unit])
        if not rest and count:
            return f"{int(count)}{unit}"
    return f"{round(seconds * 1000)}ms"
