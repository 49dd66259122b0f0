"""When schedules tick, against a clock that is looked at minute by minute."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oncekey.core.errors import ScheduleInvalid
from oncekey.schedules.timing import Cron, Every, last_until, timing_of
from tests.fixtures.ticks import ticks_between

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
# A moment shortly before clocks change. Cairo and Beirut change at midnight, Lord Howe by half an
# hour, Troll by two hours, and Apia once left a whole day out.
CHANGES = [
    ("Europe/Berlin", "2026-03-29 00:30"),
    ("Europe/Berlin", "2026-10-24 23:30"),
    ("America/New_York", "2026-03-08 05:30"),
    ("America/New_York", "2026-11-01 04:30"),
    ("Africa/Cairo", "2026-04-23 20:30"),
    ("Africa/Cairo", "2026-10-29 19:30"),
    ("Asia/Beirut", "2026-03-28 20:30"),
    ("Australia/Lord_Howe", "2026-04-04 13:30"),
    ("Australia/Lord_Howe", "2026-10-03 14:30"),
    ("Antarctica/Troll", "2026-03-28 23:30"),
    ("Antarctica/Troll", "2026-10-24 23:30"),
    ("Pacific/Apia", "2011-12-30 08:30"),
    ("Asia/Kathmandu", "2026-05-05 18:00"),
    ("UTC", "2026-02-28 22:30"),
]


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def utc(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%m-%d %H:%M:%S}"


# -- the oracle --------------------------------------------------------------------------------


def numbers_of(text: str, low: int, high: int) -> set[int]:
    """`*`, `*/n`, `a-b`, `a`, and lists of them."""
    found: set[int] = set()
    for part in text.split(","):
        term, _, step = part.partition("/")
        first, _, last = term.partition("-")
        begin = low if term == "*" else int(first)
        end = high if term == "*" or (step and not last) else int(last or first)
        found |= set(range(begin, end + 1, int(step or 1)))
    return found


def fits(line: str, shown: datetime) -> bool:
    minute, hour, day, month, weekday = line.split()
    in_month = shown.day in numbers_of(day, 1, 31)
    in_week = shown.isoweekday() % 7 in {each % 7 for each in numbers_of(weekday, 0, 7)}
    both = day.startswith("*") or weekday.startswith("*")
    return (
        shown.minute in numbers_of(minute, 0, 59)
        and shown.hour in numbers_of(hour, 0, 23)
        and shown.month in numbers_of(month, 1, 12)
        and (in_month and in_week if both else in_month or in_week)
    )


def watched(line: str, zone: str, start: int, hours: int) -> list[int]:
    """The ticks of somebody who looks at the clock every minute, from `start` on."""
    moments = range(start, start + hours * HOUR, MINUTE)
    clock = {
        each: datetime.fromtimestamp(each / 1000, ZoneInfo(zone)).replace(tzinfo=None, fold=0)
        for each in moments
    }
    minute, hour, *_ = line.split()
    if minute.startswith("*") or hour.startswith("*"):
        return [each for each in moments if fits(line, clock[each])]
    ticks = set()
    time, latest = clock[start], max(clock.values())
    while time <= latest:
        if fits(line, time):
            ticks.add(next(each for each in moments if clock[each] >= time))
        time += timedelta(minutes=1)
    return sorted(ticks)


minutes = st.sampled_from(["*", "*/10", "*/25", "0", "30", "59", "0,30", "15-20", "5/20", "45"])
hours = st.sampled_from(["*", "*/2", "*/5", "0", "1", "2", "3", "0-3", "1,2", "2-23/7", "23"])
days = st.sampled_from(["*", "*", "*/2", "1", "29", "24,25,29,30", "30"])
months = st.sampled_from(["*", "*", "2-4", "10-11", "*/3"])
weekdays = st.sampled_from(["*", "*", "0", "7", "1-5", "5,6,0"])
lines = st.tuples(minutes, hours, days, months, weekdays).map(" ".join)


@given(lines, st.sampled_from(CHANGES))
@example("30 2 * * *", CHANGES[0])
@example("0,30 2,3 * * *", CHANGES[0])
@example("30 2 * * *", CHANGES[1])
@example("*/10 5 * * *", CHANGES[8])
@example("*/10 0 * * *", CHANGES[4])
@example("0 12 * * *", CHANGES[11])
def test_ticks_are_those_of_somebody_who_watches_the_clock(
    line: str, change: tuple[str, str]
) -> None:
    zone, before = change[0], at(change[1])
    expected = watched(line, zone, before, 36)
    try:
        timing = Cron(line, zone)
    except ScheduleInvalid:
        assert expected == []
        return
    assert ticks_between(timing, before - 1, before + 36 * HOUR - MINUTE, 3000) == expected


@given(lines, st.sampled_from(CHANGES), st.integers(0, 20 * HOUR))
def test_the_next_tick_does_not_depend_on_where_one_begins(
    line: str, change: tuple[str, str], later: int
) -> None:
    begin = at(change[1])
    try:
        timing = Cron(line, change[0])
    except ScheduleInvalid:
        return
    walked = begin
    while walked <= begin + later:
        walked = timing.next_after(walked)
    assert timing.next_after(begin + later) == walked


@given(lines, st.sampled_from(CHANGES), st.integers(0, 3 * DAY))
def test_the_last_tick_is_found_without_walking(
    line: str, change: tuple[str, str], later: int
) -> None:
    try:
        timing = Cron(line, change[0])
    except ScheduleInvalid:
        return
    first = timing.next_after(at(change[1]))
    ticks = ticks_between(timing, first - 1, first + later, 10_000)
    assert last_until(timing, first, first + later) == ticks[-1]


# -- clocks that change ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line, zone, begin, ticks",
    [
        # Clocks go from 02:00 to 03:00: what is left out is made up at the end of the gap ...
        ("30 2 * * *", "Europe/Berlin", "2026-03-28 12:00", ["03-29 01:00:00", "03-30 00:30:00"]),
        # ... once for all of it, and the time after it is not made up twice.
        ("0,15,45 2 * * *", "Europe/Berlin", "2026-03-28 12:00",
         ["03-29 01:00:00", "03-30 00:00:00"]),
        ("0 2,3 * * *", "Europe/Berlin", "2026-03-28 12:00", ["03-29 01:00:00", "03-30 00:00:00"]),
        # A line that goes by the clock has no tick for what the clock does not show.
        ("*/30 2 * * *", "Europe/Berlin", "2026-03-28 12:00", ["03-30 00:00:00", "03-30 00:30:00"]),
        # Clocks go from 03:00 back to 02:00: a fixed time counts the first time ...
        ("30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", ["10-25 00:30:00", "10-26 01:30:00"]),
        # ... any other line ticks whenever the clock shows it.
        ("*/30 2 * * *", "Europe/Berlin", "2026-10-25 00:15",
         ["10-25 00:30:00", "10-25 01:00:00", "10-25 01:30:00", "10-26 01:00:00"]),
        # Seconds change nothing about that.
        ("5 30 2 * * *", "Europe/Berlin", "2026-03-28 12:00", ["03-29 01:00:00", "03-30 00:30:05"]),
    ],
)  # fmt: skip
def test_when_clocks_change(line: str, zone: str, begin: str, ticks: list[str]) -> None:
    found = ticks_between(Cron(line, zone), at(begin), at(begin) + 3 * DAY, len(ticks))
    assert [utc(each) for each in found] == ticks


def test_without_a_zone_it_is_utc() -> None:
    assert utc(Cron("0 3 * * *").next_after(at("2026-03-28 12:00"))) == "03-29 03:00:00"


def test_a_tick_is_later_than_the_moment_asked_about() -> None:
    timing = Cron("*/15 * * * * *")
    assert timing.next_after(0) == 15_000
    assert timing.next_after(14_999) == 15_000
    assert timing.next_after(15_000) == 30_000


# -- intervals ---------------------------------------------------------------------------------


@given(st.integers(1000, 400 * DAY), st.integers(0, 10**13))
def test_an_interval_ticks_at_its_multiples_since_1970(interval: int, moment: int) -> None:
    tick = Every(interval).next_after(moment)
    assert tick % interval == 0
    assert tick - interval <= moment < tick


@pytest.mark.parametrize("interval", [timedelta(minutes=15), 900, 900.0])
def test_an_interval_is_a_timedelta_or_seconds(interval: timedelta | float) -> None:
    assert Every.of(interval) == Every(15 * MINUTE)


@pytest.mark.parametrize("interval", [0, -1, 999, 3651 * DAY])
def test_an_interval_has_bounds(interval: int) -> None:
    with pytest.raises(ScheduleInvalid, match="is not between 1s and 3650d"):
        Every(interval)


def test_years_of_missed_seconds_are_not_walked() -> None:
    now = at("2026-05-05 05:05")
    assert last_until(Every(1000), 1000, now) == now
    assert last_until(Cron("* * * * * *", "Europe/Berlin"), 1000, now) == now


# -- what cannot be ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line, rule",
    [
        ("", "a line has 5 or 6 fields, not 0"),
        ("* * * *", "a line has 5 or 6 fields, not 4"),
        ("* * * * * * *", "a line has 5 or 6 fields, not 7"),
        ("@daily", "a line has 5 or 6 fields, not 1"),
        ("60 * * * *", "the minute is '60'; it must be 0-59"),
        ("60 * * * * *", "the second is '60'; it must be 0-59"),
        ("0 24 * * *", "the hour is '24'; it must be 0-23"),
        ("0 0 32 * *", "the day-of-month is '32'; it must be 1-31"),
        ("0 0 30 2 *", "the day-of-month is '30'; it must be 1-31, L or LW, and a day that one"),
        ("0 0 * 13 *", "the month is '13'; it must be 1-12 or JAN-DEC"),
        ("0 0 * * 8", "the day-of-week is '8'; it must be 0-7"),
        ("*/0 * * * *", "the minute is '*/0'"),
        ("5-1 * * * *", "the minute is '5-1'"),
        ("x * * * *", "the minute is 'x'"),
        ("* * */20 * 1L", "has no tick within 50 years: no day fits it"),
        ("*" * 201, "a cron line has at most 200 characters"),
    ],
)
def test_a_line_that_cannot_be_used_names_the_field_and_the_rule(line: str, rule: str) -> None:
    with pytest.raises(ScheduleInvalid) as refused:
        Cron(line)
    assert rule in str(refused.value)


@given(st.text("0123456789*/,-#LWMONSUJAN² \t@?", max_size=40))
@example("1L/2 * * * *")
@example("* * * * 1#1/2")
@example("* * L/2 * ²L")
@example("9999999999999999999999 * * * *")
def test_any_text_is_a_line_or_refused(text: str) -> None:
    try:
        timing = Cron(text, "Europe/Berlin")
    except ScheduleInvalid:
        return
    assert timing.next_after(at("2026-05-05 00:00")) > at("2026-05-05 00:00")


@pytest.mark.parametrize("zone", ["", "Berlin", "Europe/Berlin ", "../etc/passwd", "/etc", "Z\x00"])
def test_a_zone_that_is_none_is_refused(zone: str) -> None:
    with pytest.raises(ScheduleInvalid, match="there is no time zone"):
        Cron("0 0 * * *", zone)


@pytest.mark.parametrize(
    "timing", [Cron("0  3 * * MON", "Europe/Berlin"), Cron("*/5 * * * * *"), Every(5_400_000)]
)
def test_a_timing_is_written_as_text_and_read_back(timing: Cron | Every) -> None:
    assert timing_of(str(timing)) == timing
