"""Durations and retention classes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.core.errors import InvalidInput, RetentionUnknown
from oncekey.core.retention import (
    MAX_SECONDS,
    Retention,
    check_class,
    check_seconds,
    duration_of,
    seconds_of,
)


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("500ms", 0.5),
        ("1s", 1),
        ("90s", 90),
        ("15m", 900),
        ("24h", 86400),
        ("7d", 604800),
        ("2w", 1209600),
        ("1d12h", 129600),
        ("1.5h", 5400),
        (" 24H ", 86400),
        ("1h1h", 7200),
    ],
)
def test_a_duration_in_seconds(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "0s", "24", "h", "24 h", "-1h", "1y", "1h30", "soon", "1e3s", "٣h", "1h,2m", "1.s"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a duration; write 30s, 15m, 24h, 7d or 1d12h"):
        seconds_of(text)


@given(st.integers(1, MAX_SECONDS * 1000))
def test_a_duration_reads_as_it_was_written(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert round(seconds_of(duration_of(seconds)) * 1000) == milliseconds


@pytest.mark.parametrize(
    "seconds, text",
    [(86400, "1d"), (5400, "90m"), (3600, "1h"), (60, "1m"), (1, "1s"), (0.25, "250ms")],
)
def test_a_duration_is_written_short(seconds: float, text: str) -> None:
    assert duration_of(seconds) == text


@pytest.mark.parametrize("seconds", [0, -1, MAX_SECONDS + 1, float("inf"), float("nan")])
def test_an_answer_cannot_be_kept_for(seconds: float) -> None:
    with pytest.raises(InvalidInput):
        check_seconds(seconds)


def test_the_shortest_time_is_a_millisecond() -> None:
    assert check_seconds(0.0001) == 1


@pytest.mark.parametrize("name", ["a", "nightly", "a-b_c9", "a" * 32])
def test_the_name_of_a_class(name: str) -> None:
    assert check_class(name) == name


@pytest.mark.parametrize("name", ["", "A", "9a", "-a", "a b", "a" * 33, "a\n", "é"])
def test_what_is_no_name_of_a_class(name: str) -> None:
    with pytest.raises(InvalidInput):
        check_class(name)


def test_the_classes_everybody_has() -> None:
    assert Retention().seconds() == {"financial": 604800, "interactive": 86400, "webhook": 604800}


def test_a_change_is_seen_by_the_next_who_asks() -> None:
    classes = Retention({"nightly": 60, "interactive": 5})
    assert (classes.milliseconds("nightly"), classes.milliseconds("interactive")) == (60_000, 5000)
    classes.update({"interactive": 7})
    assert classes.milliseconds("interactive") == 7000


def test_a_class_nobody_knows_is_told_with_those_there_are() -> None:
    with pytest.raises(RetentionUnknown, match="no retention class 'x'; there are: financial, "):
        Retention().milliseconds("x")
