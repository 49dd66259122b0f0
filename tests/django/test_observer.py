"""Whoever watches is told of views as of everything else."""

from typing import Any

from django.test import override_settings

from oncekey.observe.meter import Meter
from oncekey.observe.metrics import Metrics
from oncekey.observe.watch import RequestWatch
from tests.fixtures.scraped import Scraped


def test_requests_to_views_are_counted(send: Any) -> None:
    meter = Meter(store="sqlite")
    with override_settings(IDEMPOTENCY_OBSERVER=RequestWatch(meter)):
        answers = [send("/plain/", "k", amount=5), send("/plain/", "k", amount=5)]
        answers += [send("/plain/", "k", amount=6), send("/plain/"), send("/plain/", "t-x")]
    assert [answer.status_code for answer in answers] == [201, 201, 422, 201, 400]
    seen = Scraped(Metrics(meter).page("")[1].decode())
    place = {"endpoint": "POST /plain/"}
    assert seen.value("idempotency_key_present_total", **place, case="A") == 3
    assert seen.value("idempotency_cache_hit_total", **place, status="201") == 1
    assert seen.value("idempotency_key_missing_total", **place) == 1
    assert seen.value("idempotency_key_invalid_total", **place, reason="prefix") == 1
    name = "oncekey_request_seconds_count"
    ways = {"new": 1, "replay": 1, "mismatch": 1, "passed": 1, "refused": 1}
    assert {way: seen.value(name, **place, way=way) for way in ways} == ways
    assert seen.value("oncekey_requests_in_flight") == 0
