"""Which tick is next when some were missed."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.schedules.missed import GRACE, Turn, turn_of
from oncekey.schedules.timing import Every

MINUTE = 60_000
TIMING = Every(MINUTE)


@pytest.mark.parametrize("missed", ["skip", "last", "all"])
def test_a_tick_that_has_come_is_next(missed: Literal["skip", "last", "all"]) -> None:
    assert turn_of(TIMING, missed, 5 * MINUTE, 5 * MINUTE) == Turn(5 * MINUTE, 6 * MINUTE)
    late = 5 * MINUTE + 59_999
    assert turn_of(TIMING, missed, 5 * MINUTE, late) == Turn(5 * MINUTE, 6 * MINUTE)


@pytest.mark.parametrize("missed", ["skip", "last", "all"])
def test_before_its_time_there_is_none(missed: Literal["skip", "last", "all"]) -> None:
    assert turn_of(TIMING, missed, 5 * MINUTE, 5 * MINUTE - 1) == Turn(None, 5 * MINUTE)


def test_all_are_made_up_for_in_turn() -> None:
    now, at, ticks = 9 * MINUTE + 1, 5 * MINUTE, []
    while (turn := turn_of(TIMING, "all", at, now)).tick is not None:
        ticks.append(turn.tick // MINUTE)
        at = turn.next_at
    assert ticks == [5, 6, 7, 8, 9]
    assert at == 10 * MINUTE


def test_only_the_last_is_made_up_for() -> None:
    turn = turn_of(TIMING, "last", 5 * MINUTE, 9 * MINUTE + 1)
    assert turn == Turn(9 * MINUTE, 10 * MINUTE, dropped_from=5 * MINUTE)


def test_what_was_missed_is_skipped_and_what_is_only_late_is_not() -> None:
    hourly = Every(60 * MINUTE)
    tick = 60 * MINUTE
    assert turn_of(hourly, "skip", tick, tick + GRACE).tick == tick
    assert turn_of(hourly, "skip", tick, tick + GRACE + 1) == Turn(None, 2 * tick, tick)
    assert turn_of(hourly, "skip", tick, 5 * tick + 1) == Turn(5 * tick, 6 * tick, tick)


def test_each_tick_within_the_grace_has_its_turn() -> None:
    now, at, ticks = 1_000_000, 0, []
    while (turn := turn_of(Every(20_000), "skip", at, now)).tick is not None:
        ticks.append(turn.tick)
        at = turn.next_at
    assert ticks == [940_000, 960_000, 980_000, 1_000_000]


@pytest.mark.parametrize("missed", ["skip", "last", "all"])
def test_where_the_store_stands_may_be_no_tick_of_a_timing_that_was_changed(
    missed: Literal["skip", "last", "all"],
) -> None:
    assert turn_of(TIMING, missed, 5 * MINUTE + 7, 5 * MINUTE + 30_000) == Turn(None, 6 * MINUTE)


@given(
    st.sampled_from(["skip", "last", "all"]),
    st.integers(1, 90).map(lambda seconds: Every(seconds * 1000)),
    st.integers(0, 10**7),
    st.integers(-(10**5), 10**6),
)
def test_a_turn_always_goes_forward_and_names_ticks_only(
    missed: Literal["skip", "last", "all"], timing: Every, next_at: int, later: int
) -> None:
    now = next_at + later
    turn = turn_of(timing, missed, next_at, now)
    assert turn.next_at % timing.interval == 0
    assert turn.next_at >= next_at
    if turn.tick is None:
        assert turn.next_at > now
    else:
        assert turn.tick % timing.interval == 0
        assert next_at <= turn.tick <= now
        assert turn.next_at == turn.tick + timing.interval
