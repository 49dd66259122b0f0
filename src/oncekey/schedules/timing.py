"""When a schedule ticks: a cron line in a time zone, or an interval counted from 1970.

Ticks depend on nothing but the schedule, so that every process names the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Protocol
from zoneinfo import ZoneInfo

from oncekey.core.errors import ConfigurationError, ScheduleInvalid
from oncekey.core.retention import duration_of, seconds_of

if TYPE_CHECKING:
    from cronsim import CronSim

MIN_INTERVAL = 1000
MAX_INTERVAL = 10 * 365 * 86_400_000

_MAX_LINE = 200
_SECOND = 1000
# As `cronsim` names them in its complaints, in the order of a line with seconds.
_FIELDS = {
    "second": "0-59",
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31, L or LW, and a day that one of the months has",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 (0 and 7 are Sunday) or SUN-SAT, 5L, MON#1",
}
_HOW = "written as *, 5, 1-5, 1,3 or */15"


# Of one time that a clock shows.
Moments = tuple[int, ...]


class Timing(Protocol):
    """Times are milliseconds since 1970."""

    def next_after(self, at: int) -> int:
        """The first tick later than `at`."""
        ...


@dataclass(frozen=True, slots=True)
class Every:
    """An interval in milliseconds. Its ticks are its multiples since 1970, whoever counts them."""

    interval: int

    def __post_init__(self) -> None:
        if not MIN_INTERVAL <= self.interval <= MAX_INTERVAL:
            raise ScheduleInvalid(
                f"an interval of {duration_of(self.interval / 1000)} is not between 1s and 3650d"
            )

    @classmethod
    def of(cls, interval: timedelta | float) -> Every:
        """From a `timedelta`, or from seconds."""
        seconds = interval.total_seconds() if isinstance(interval, timedelta) else interval
        return cls(round(seconds * 1000))

    def next_after(self, at: int) -> int:
        return (at // self.interval + 1) * self.interval

    def __str__(self) -> str:
        return f"every {duration_of(self.interval / 1000)}"


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron line of five fields, or of six with the second in front, as the clocks of a zone go.

    When clocks change, it does what Debian's cron does. A line with a fixed time (neither its
    minute nor its hour begins with `*`) ticks the first moment the clock shows that time or a later
    one: once, also when the time is left out or comes twice. Any other line ticks whenever the
    clock shows a time that fits: never for one that is left out, twice for one that comes twice.
    """

    line: str
    timezone: str = "UTC"
    _zone: tzinfo = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_zone", _zone_of(self.timezone))
        if len(self.line) > _MAX_LINE:
            raise ScheduleInvalid(f"a cron line has at most {_MAX_LINE} characters")
        object.__setattr__(self, "line", " ".join(self.line.split()))
        # Two broken rules to find: one in how it is written, and that it never ticks.
        _walk(self.line, datetime(1970, 1, 1))  # noqa: DTZ001 - as a clock shows it
        self.next_after(0)

    def next_after(self, at: int) -> int:
        local = datetime.fromtimestamp(at // _SECOND, self._zone)
        minute, hour = self.line.split()[-5:-3]
        if not minute.startswith("*") and not hour.startswith("*"):
            return self._first(local, at, lambda shown: (_reached(shown),))
        tick = self._first(local, at, _moments_of)
        overlap = _offset_of(local) - _offset_of(local.replace(fold=1))
        if overlap and not local.fold:
            # Soon the clock shows once more what it has just shown.
            again = self._first(local - overlap, at, lambda shown: _moments_of(shown)[1:])
            tick = min(tick, again)
        return tick

    def __str__(self) -> str:
        return f"cron {self.line} {self.timezone}"

    def _first(self, start: datetime, at: int, moments_of: Callable[[datetime], Moments]) -> int:
        """The first moment later than `at` of the times on the clock that fit, from `start` on."""
        for shown in _walk(self.line, start.replace(tzinfo=None, fold=0)):
            for moment in moments_of(shown.replace(tzinfo=self._zone)):
                if moment > at:
                    return moment
        raise ScheduleInvalid(f"cron {self.line!r} has no tick within 50 years: no day fits it")


def last_until(timing: Timing, first: int, until: int) -> int:
    """The last tick up to and with `until`, where `first` is a tick that is not later.

    Halves the time between, so that years of missed seconds cost no more than a missed day.
    """
    low, high = first - 1, until
    while high - low > 1:
        middle = (low + high) // 2
        if timing.next_after(middle) <= until:
            low = middle
        else:
            high = middle
    return timing.next_after(low)


def timing_of(text: str) -> Timing:
    """The inverse of `str(timing)`."""
    kind, _, rest = text.partition(" ")
    if kind == "every":
        return Every.of(seconds_of(rest))
    line, _, timezone = rest.rpartition(" ")
    return Cron(line, timezone)


def _zone_of(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ScheduleInvalid(
            f"there is no time zone {name!r}; write one such as UTC or Europe/Berlin "
            "(a system without zones gets them by: pip install tzdata)"
        ) from None


def _walk(line: str, start: datetime) -> CronSim:
    try:
        from cronsim import CronSim, CronSimError
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"{error}; cron needs it: pip install 'oncekey[edge]'") from error
    try:
        return CronSim(line, start)
    except CronSimError as error:
        raise ScheduleInvalid(f"cron {line!r}: {_broken_rule(line, str(error))}") from None


def _broken_rule(line: str, complaint: str) -> str:
    values = line.split()
    name = complaint.removeprefix("Bad ")
    if name not in _FIELDS:
        wanted = "minute hour day-of-month month day-of-week, with the second in front if wanted"
        return f"a line has 5 or 6 fields, not {len(values)}: {wanted}"
    value = values[list(_FIELDS).index(name) - 6]
    return f"the {name} is {value!r}; it must be {_FIELDS[name]}, {_HOW}"


def _moments_of(shown: datetime) -> Moments:
    """When the clock shows this time: once, twice, or never because it is put forward over it."""
    if _is_left_out(shown):
        return ()
    return (_milliseconds_of(shown), _milliseconds_of(shown.replace(fold=1)))


def _reached(shown: datetime) -> int:
    """The first moment the clock shows this time or a later one."""
    if not _is_left_out(shown):
        return _milliseconds_of(shown)
    # By the offset before the change such a time lies after it, by the one behind it before.
    low, high = int(shown.replace(fold=1).timestamp()), int(shown.timestamp())
    behind = datetime.fromtimestamp(high, shown.tzinfo).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, shown.tzinfo).utcoffset() == behind:
            high = middle
        else:
            low = middle
    return high * _SECOND


def _is_left_out(shown: datetime) -> bool:
    return shown.astimezone(UTC).astimezone(shown.tzinfo) != shown


def _offset_of(local: datetime) -> timedelta:
    return local.utcoffset() or timedelta()


def _milliseconds_of(moment: datetime) -> int:
    return int(moment.timestamp()) * _SECOND
