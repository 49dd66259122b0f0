"""Rests between attempts, and what counts as a duration."""

import math
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.core.errors import ConfigurationError, InvalidInput
from oncekey.core.retention import MAX_SECONDS
from oncekey.durable.retry import Retry, seconds_of

seeds = st.integers() | st.binary(max_size=20)
retries = st.builds(
    Retry,
    attempts=st.integers(1, 10**6),
    initial=st.floats(0, 100),
    factor=st.floats(1, 10),
    longest=st.floats(0, 1000),
    jitter=st.floats(0, 1),
)


@pytest.mark.parametrize(
    "duration, seconds",
    [
        (0, 0.0),
        (5, 5.0),
        (0.25, 0.25),
        (timedelta(minutes=5), 300.0),
        (timedelta(milliseconds=1), 0.001),
        (MAX_SECONDS, float(MAX_SECONDS)),
    ],
)
def test_a_duration_is_a_timedelta_or_seconds(duration: Any, seconds: float) -> None:
    found = seconds_of(duration)
    assert found == seconds
    assert type(found) is float


@pytest.mark.parametrize(
    "duration",
    [
        -1,
        -0.001,
        timedelta(seconds=-1),
        MAX_SECONDS + 1,
        timedelta.max,
        10**400,
        math.inf,
        math.nan,
    ],
)
def test_a_duration_is_not_negative_and_not_endless(duration: Any) -> None:
    with pytest.raises(InvalidInput, match="is not between 0 and ten years"):
        seconds_of(duration)


@pytest.mark.parametrize("duration", ["5", None, True, b"5", [5]])
def test_what_is_no_duration(duration: Any) -> None:
    with pytest.raises(InvalidInput, match="is not a duration; give a timedelta, or seconds"):
        seconds_of(duration)


@given(st.timedeltas(timedelta(0), timedelta(days=3650)))
def test_a_timedelta_and_its_seconds_are_the_same_duration(duration: timedelta) -> None:
    assert seconds_of(duration) == seconds_of(duration.total_seconds())


def test_seventy_attempts_that_rest_longer_and_longer() -> None:
    retry = Retry(jitter=0)
    rests = [retry.delay(attempt, 1) for attempt in range(1, 10)]
    assert (retry.attempts, retry.on_max_attempts) == (70, "pause")
    assert rests == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]


@given(retries, st.integers(1, 10**6), seeds)
def test_a_rest_is_within_its_bounds(retry: Retry, attempt: int, seed: int | bytes) -> None:
    whole = Retry(**{**_fields(retry), "jitter": 0.0}).delay(attempt, seed)
    rest = retry.delay(attempt, seed)
    assert whole * (1 - retry.jitter) - 1e-9 <= rest <= whole <= seconds_of(retry.longest)


@given(retries, st.integers(1, 100), seeds)
def test_a_rest_is_the_same_for_the_same_work(
    retry: Retry, attempt: int, seed: int | bytes
) -> None:
    assert retry.delay(attempt, seed) == retry.delay(attempt, seed)


def test_works_that_failed_together_do_not_come_back_together() -> None:
    retry = Retry(initial=10, jitter=0.5)
    rests = sorted(retry.delay(1, seed) for seed in range(1000))
    assert len(set(rests)) == 1000
    assert rests[0] < 5.1
    assert rests[-1] > 9.9


def test_an_attempt_beyond_what_a_float_holds_rests_longest() -> None:
    assert Retry(factor=10, jitter=0).delay(10**6, 1) == 60
    assert Retry(initial=0, factor=10, jitter=0).delay(10**6, 1) == 0


def test_durations_of_both_kinds_make_equal_rules() -> None:
    assert Retry(initial=timedelta(seconds=2)) == Retry(initial=2.0)
    assert hash(Retry(longest=timedelta(minutes=1))) == hash(Retry(longest=60))


def test_never_is_one_attempt_that_the_workflow_hears_of() -> None:
    assert Retry.never() == Retry(attempts=1, on_max_attempts="raise")


@pytest.mark.parametrize(
    "options, rule",
    [
        ({"attempts": 0}, "attempts must be 1 or more, not 0"),
        ({"attempts": 1.5}, "attempts must be 1 or more, not 1.5"),
        ({"attempts": True}, "attempts must be 1 or more, not True"),
        ({"initial": -1}, "initial: a duration of -1 is not between 0 and ten years"),
        ({"initial": "1s"}, "initial: '1s' is not a duration"),
        ({"longest": math.inf}, "longest: a duration of inf is not between 0 and ten years"),
        ({"factor": 0.5}, "factor must be 1 or more, not 0.5"),
        ({"factor": math.nan}, "factor must be 1 or more, not nan"),
        ({"factor": math.inf}, "factor must be 1 or more, not inf"),
        ({"factor": None}, "factor must be 1 or more, not None"),
        ({"jitter": 1.1}, "jitter must be between 0 and 1, not 1.1"),
        ({"jitter": -0.1}, "jitter must be between 0 and 1, not -0.1"),
        ({"on_max_attempts": "stop"}, "on_max_attempts must be pause, kill or raise, not 'stop'"),
    ],
)
def test_a_rule_that_cannot_work_is_refused(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(ConfigurationError, match=rule):
        Retry(**options)


def _fields(retry: Retry) -> dict[str, Any]:
    return {name: getattr(retry, name) for name in Retry.__dataclass_fields__}
