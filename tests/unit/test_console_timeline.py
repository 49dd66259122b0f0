"""How a journal becomes bars, and times and failures become words."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from oncekey.console.timeline import Failure, age_of, failure_of, timeline_of

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat()


def step(number: int, start: float, end: float, kind: str = "run", **more: Any) -> dict[str, Any]:
    shape = {"from_step": number, "kind": kind, "started_at": at(start), "at": at(end)}
    return {**shape, "failed": False, "value": "1", **more}


def life(completed: float | None = None, forked_at: int | None = None) -> dict[str, Any]:
    ended = None if completed is None else at(completed)
    return {"created_at": at(0), "completed_at": ended, "forked_at": forked_at}


def test_bars_lie_where_steps_were_in_the_whole_life() -> None:
    steps = [step(1, 0, 10), step(2, 10, 60, "promise"), step(3, 60, 100, failed=True)]
    drawn = timeline_of(life(100), {"steps": steps, "waits": []}, START)
    assert [(each.bar, each.tone) for each in drawn.steps] == [
        ((0.0, 100.0), "done"),
        ((100.0, 500.0), "waits"),
        ((600.0, 400.0), "failed"),
    ]


def test_what_a_fork_took_over_has_no_place_in_its_life() -> None:
    steps = [step(1, -50, -40), step(2, 1, 2)]
    drawn = timeline_of(life(10, forked_at=2), {"steps": steps, "waits": []}, START)
    assert [each.tone for each in drawn.steps] == ["copied", "done"]
    assert [each.bar is None for each in drawn.steps] == [True, False]


def test_what_is_waited_for_goes_on_to_the_end() -> None:
    wait = {"since": at(50), "trouble": '{"code": "E", "message": "why"}'}
    now = START + timedelta(seconds=100)
    (drawn,) = timeline_of(life(), {"steps": [], "waits": [wait]}, now).waits
    assert drawn.bar is not None
    assert drawn.bar.x + drawn.bar.width == pytest.approx(1000, abs=0.2)
    assert drawn.failure == Failure("E", "why", None)


def test_a_life_that_goes_on_is_drawn_the_same_for_a_while() -> None:
    journal = {"steps": [step(1, 0, 1800)], "waits": []}

    def width(seconds: float) -> float:
        (row,) = timeline_of(life(), journal, START + timedelta(seconds=seconds)).steps
        assert row.bar is not None
        return row.bar.width

    assert width(3601) == width(3603)
    assert width(3601) != width(4200)
    # Never shorter than it is, nor much longer.
    for seconds in (1801, 3600, 5000, 40_000):
        assert seconds * 0.99 <= 1800 / width(seconds) * 1000 <= seconds * 1.05


def test_a_clock_that_is_behind_breaks_nothing() -> None:
    journal = {"steps": [step(1, 0, 1)], "waits": [{"since": at(1), "trouble": None}]}
    drawn = timeline_of(life(), journal, START - timedelta(seconds=5))
    assert drawn.steps[0].bar is not None
    assert age_of(at(0), START - timedelta(seconds=5)) == "under 1 min"


@pytest.mark.parametrize(
    "error, failure",
    [
        ({"code": "E", "message": "m", "data": [1]}, Failure("E", "m", [1])),
        ({"message": "m"}, Failure("", "m", None)),
        ({"message": 7}, Failure("", '{"message": 7}', None)),
        ('{"code": "E", "message": "m"}', Failure("E", "m", None)),
        ('{"code": "E", "mess', Failure("", '{"code": "E", "mess', None)),
        ("a text", Failure("", "a text", None)),
        ('"a text"', Failure("", "a text", None)),
        (None, Failure("", "null", None)),
        ([1, "ü"], Failure("", '[1, "ü"]', None)),
    ],
)
def test_a_failure_is_told_in_words(error: Any, failure: Failure) -> None:
    assert failure_of(error) == failure


@pytest.mark.parametrize(
    "seconds, words",
    [(0, "under 1 min"), (61, "1 min"), (150, "2 min"), (7300, "2 h"), (200_000, "2 d")],
)
def test_ages_are_rough(seconds: float, words: str) -> None:
    assert age_of(at(0), START + timedelta(seconds=seconds)) == words
    assert age_of(None) == "–"
