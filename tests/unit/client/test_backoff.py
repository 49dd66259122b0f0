"""Pauses between attempts, and what a server may say about them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey import ConfigurationError
from oncekey.client import Backoff
from oncekey.client.backoff import seconds_in

NOW = 1_700_000_000.0


def test_pauses_double_up_to_a_bound() -> None:
    backoff = Backoff(first=0.2, longest=1.0)
    assert [backoff.pause(n, None, lambda: 1.0) for n in (1, 2, 3, 4, 99)] == [
        0.2, 0.4, 0.8, 1.0, 1.0,
    ]  # fmt: skip


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_jitter_stays_within(failures: int, drawn: float) -> None:
    assert 0 <= Backoff().pause(failures, None, lambda: drawn) <= Backoff().longest


def test_the_server_is_heard_within_reason() -> None:
    assert Backoff().pause(1, 8.0, lambda: 0.0) == 8.0
    # Never sooner, and not all of them at once.
    assert Backoff().pause(1, 8.0, lambda: 1.0) == 10.0
    assert Backoff(longest_wait=20).pause(1, 86400.0, lambda: 1.0) == 20


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("3", 3.0),
        (" 0 ", 0.0),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30.0),
        ("Tue, 14 Nov 2023 22:13:00 GMT", 0.0),
        ("", None),
        ("soon", None),
        ("Fri, 31 Dec 99999 00:00:00 GMT", None),
        ("-1", None),
        ("1.5", None),
        ("²", None),
    ],
)
def test_retry_after(text: str, seconds: float | None) -> None:
    assert seconds_in(text, NOW) == seconds


@given(st.text(max_size=60))
def test_no_retry_after_breaks_a_caller(text: str) -> None:
    found = seconds_in(text, NOW)
    assert found is None or found >= 0


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"deadline": -1.0}, {"first": -0.1}])
def test_what_cannot_be(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="1 attempt or more"):
        Backoff(**wrong)
