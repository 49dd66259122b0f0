"""Schedules as they are declared, and what of them is written down."""

import json
from typing import Any

import pytest

from oncekey.core.errors import ConfigurationError, OnceKeyError, ScheduleInvalid, ScopeInvalid
from oncekey.core.schedules import StoredSchedule
from oncekey.schedules import CallUrl, Cron, Every, Schedule, StartWorkflow
from oncekey.schedules.schedule import decode_spec, encode_spec, key_of, spec_of

SECRET = "s3cret-of-the-shop"
URL = "https://shop.example/ticks"


def stored(spec: str) -> StoredSchedule:
    return StoredSchedule("nightly", "default", spec, False, 0, None, 0)


@pytest.mark.parametrize(
    "target",
    [
        StartWorkflow("nightly", {"depth": 2}),
        StartWorkflow("nightly"),
        CallUrl(URL, [1, None, "ü"], secret_env="SHOP_SECRET", timeout=5.0, attempts=3),
        CallUrl("http://10.0.0.7:8080/x?y=1", secret=SECRET),
        CallUrl("http://[::1]:8080/", secret=SECRET),
    ],
)
def test_what_is_written_down_is_read_back(target: StartWorkflow | CallUrl) -> None:
    spec = spec_of(Schedule("nightly", Cron("0 3 * * *", "Europe/Berlin"), target), "code")
    assert decode_spec(stored(encode_spec(spec))) == spec


def test_no_secret_is_written_down_or_shown() -> None:
    schedule = Schedule("nightly", Every(60_000), CallUrl(URL, secret=SECRET))
    assert SECRET not in encode_spec(spec_of(schedule, "configuration"))
    assert SECRET not in repr(schedule)


def test_the_spec_says_what_a_store_must_know() -> None:
    spec = spec_of(Schedule("a", Every(60_000), StartWorkflow("w"), paused=True), "code")
    written = json.loads(encode_spec(spec))
    assert (written["timing"], written["paused"]) == ("every 1m", True)


@pytest.mark.parametrize(
    "options, error, rule",
    [
        ({"id": ""}, ScheduleInvalid, "is no id of a schedule"),
        ({"id": "a:b"}, ScheduleInvalid, "1 to 64 of A-Z a-z 0-9 . _ -"),
        ({"id": "-a"}, ScheduleInvalid, "with a letter or digit in front"),
        ({"id": "a" * 65}, ScheduleInvalid, "is no id of a schedule"),
        ({"tenant": "a b"}, ScopeInvalid, "tenant 'a b' is not a slug"),
        ({"missed": "never"}, ScheduleInvalid, "not one of skip, last, all"),
        (
            {"target": StartWorkflow("w", "x" * (256 << 10))},
            ScheduleInvalid,
            "what a tick carries is 262146 bytes, and may be 262144",
        ),
    ],
)
def test_a_schedule_that_cannot_be_names_the_rule(
    options: dict[str, Any], error: type[OnceKeyError], rule: str
) -> None:
    given = {"id": "nightly", "timing": Every(60_000), "target": StartWorkflow("w"), **options}
    with pytest.raises(error) as refused:
        Schedule(**given)
    assert rule in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "", "shop.example/x", "ftp://shop.example/", "http://", "http:///x", "http://a:b/",
        "http://a:0/", "http://[::1/", "http://a/#part", "http://a/ b", "http://a/\n", "file:///x",
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_called_is_refused(url: str) -> None:
    with pytest.raises(ScheduleInvalid, match="is no address to call"):
        CallUrl(url, secret=SECRET)


def test_an_address_holds_no_password() -> None:
    with pytest.raises(ScheduleInvalid) as refused:
        CallUrl("https://user:hunter2@shop.example/", secret=SECRET)
    assert "holds no user or password" in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "options, rule",
    [
        ({}, "needs secret_env or secret"),
        ({"secret": SECRET, "secret_env": "X"}, "needs secret_env or secret"),
        ({"secret": "short"}, "at least 16 characters"),
        ({"secret": SECRET, "timeout": 0}, "is not between 0 and 10 minutes"),
        ({"secret": SECRET, "attempts": 0}, "0 attempts are not between 1 and 70"),
        ({"secret": SECRET, "attempts": 71}, "71 attempts are not between 1 and 70"),
    ],
)
def test_a_call_that_cannot_be_names_the_rule(options: dict[str, Any], rule: str) -> None:
    with pytest.raises((ScheduleInvalid, ConfigurationError)) as refused:
        CallUrl(URL, **options)
    assert rule in str(refused.value)
    assert SECRET not in str(refused.value)


def test_what_another_version_wrote_is_told_apart() -> None:
    with pytest.raises(ScheduleInvalid, match="was stored by another version of OnceKey"):
        decode_spec(stored('{"timing": 5}'))


def test_the_key_of_a_tick() -> None:
    assert key_of("nightly", 1_700_000_000_000) == "sched:nightly:1700000000000"
