"""Counting is exact, and its labels are bounded whatever comes."""

import fcntl
import threading
from pathlib import Path

import pytest

from oncekey.core.events import Way
from oncekey.observe.catalog import BY_EVENT, COUNTERS
from oncekey.observe.meter import Meter
from oncekey.observe.metrics import Metrics
from oncekey.observe.pulse import Pulse, quantile
from oncekey.observe.snapshot import Counts
from oncekey.observe.watch import RequestWatch
from tests.fixtures.scraped import Scraped


def page(meter: Meter) -> Scraped:
    return Scraped(Metrics(meter).page("")[1].decode())


def test_a_flood_of_made_up_names_makes_no_series() -> None:
    meter = Meter(max_tenants=3, max_endpoints=5)
    for number in range(20_000):
        meter.count("replay", f"POST /{number % 50}", f"t-x{number}:p:user:u{number}", 200)
        meter.time(f"POST /{number}", "new", 0.001)
    seen = page(meter)
    found = seen.labels("idempotency_cache_hit_total")
    assert len({(each["tenant"], each["project"]) for each in found}) == 4
    assert len({each["endpoint"] for each in found}) == 6
    assert seen.value("idempotency_cache_hit_total") == 20_000
    assert seen.value("oncekey_request_seconds_count") == 20_000
    assert len(seen.labels("oncekey_request_seconds_count")) == 6
    assert len(meter._by_event) <= 8192
    assert len(meter._by_way) <= 8192


def test_processes_share_what_they_admit(tmp_path: Path) -> None:
    meters = [Meter(max_tenants=5, max_endpoints=5, folder=tmp_path) for _ in range(4)]
    for number in range(400):
        meters[number % 4].count("busy", f"POST /{number}", f"t-x{number}:p:user:u")
    found = [each for meter in meters for each in page(meter).labels("oncekey_conflicts_total")]
    assert len({each["tenant"] for each in found}) == 6
    assert len({each["endpoint"] for each in found}) == 6
    # Whoever comes later knows them, and no others.
    later = Meter(max_tenants=5, max_endpoints=5, folder=tmp_path)
    later.count("busy", "POST /0", "t-x0:p:user:u")
    later.count("busy", "POST /new", "t-new:p:user:u")
    assert [each["tenant"] for each in page(later).labels("oncekey_conflicts_total")] == [
        "x0",
        "other",
    ]


@pytest.mark.parametrize("frozen", [True, False])
def test_what_cannot_be_shared_counts_all_the_same(tmp_path: Path, frozen: bool) -> None:
    meter = Meter(folder=tmp_path if frozen else tmp_path / "gone")
    with (tmp_path / "tenants").open("w") as tenants, (tmp_path / "endpoints").open("w") as places:
        fcntl.flock(tenants, fcntl.LOCK_EX)
        fcntl.flock(places, fcntl.LOCK_EX)
        meter.count("busy", "POST /a", "t-a:b:user:c")
    (only,) = page(meter).labels("oncekey_conflicts_total")
    assert (only["tenant"], only["endpoint"]) == ("a", "POST /a")


def test_an_age_is_that_of_the_count() -> None:
    """What has ended since then grows no older, however long nobody can count."""
    meter = Meter()
    meter.counts = Counts(1_000_000, 1, 999_900, {}, {}, 940_000)
    assert page(meter).value("oncekey_oldest_claim_seconds") == 0.1
    assert page(meter).value("oncekey_oldest_waiting_seconds") == 60


@pytest.mark.parametrize("way", ["new", "passed", "refused"])
def test_whatever_is_answered_with_a_5xx_has_failed(way: Way) -> None:
    meter = Meter()
    watch = RequestWatch(meter)
    seen = watch.begin("POST /a")
    seen.way = way
    watch.end(seen, 503)
    assert page(meter).value("oncekey_request_seconds_count", way="failed") == 1


def test_subjects_share_the_series_of_their_tenant() -> None:
    meter = Meter()
    for subject in range(10_000):
        meter.count("busy", "POST /a", f"t-acme:shop:user:{subject}")
    (only,) = page(meter).labels("oncekey_conflicts_total")
    assert only == {"tenant": "acme", "project": "shop", "endpoint": "POST /a"}
    assert page(meter).value("oncekey_conflicts_total") == 10_000


def test_threads_lose_no_count() -> None:
    meter = Meter()

    def count() -> None:
        for _ in range(20_000):
            meter.count("busy", "POST /a", "t-a:b:user:c")
            meter.time("POST /a", "new", 0.5)

    threads = [threading.Thread(target=count) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    seen = page(meter)
    assert seen.value("oncekey_conflicts_total") == 160_000
    assert seen.value("oncekey_request_seconds_count") == 160_000
    assert seen.value("oncekey_request_seconds_sum") == 80_000


@pytest.mark.parametrize("event", BY_EVENT)
def test_every_event_has_its_counter(event: str) -> None:
    meter = Meter()
    labels = {each.name: each.labels for each in COUNTERS}[BY_EVENT[event]]
    detail = "x" if len(labels) == 4 else ""
    meter.count(event, "POST /a", "t-a:b:user:c", detail)
    seen = page(meter)
    assert seen.value(f"{BY_EVENT[event]}_total", endpoint="POST /a") == 1
    assert set(seen.labels(f"{BY_EVENT[event]}_total")[0]) == set(labels)


def test_buckets_add_up() -> None:
    meter = Meter()
    for seconds in (0.00004, 0.0003, 0.0003, 40.0):
        meter.time("POST /a", "new", seconds)
    seen = page(meter)
    name = "oncekey_request_seconds_bucket"
    assert seen.value(name, le="5e-05") == 1
    assert seen.value(name, le="0.0005") == 3
    assert seen.value(name, le="30.0") == 3
    assert seen.value(name, le="+Inf") == 4


def test_open_metrics_for_whoever_accepts_them() -> None:
    metrics = Metrics(Meter())
    kind, text = metrics.page("application/openmetrics-text;version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")
    assert metrics.page("text/plain")[0].startswith("text/plain")
    odd = metrics.page("application/openmetrics-text;version=nonsense;escaping=x")[0]
    assert "nonsense" not in odd


def test_the_pulse_tells_what_was_new_since_the_last_time() -> None:
    meter, steady = Meter(), [10.0]
    watch = RequestWatch(meter)
    pulse = Pulse(meter.snapshot, lambda: steady[0], lambda: 5.0)
    pulse.take()
    assert pulse.samples() == []
    for way in ("new", "new", "replay", "conflict"):
        seen = watch.begin("POST /a")
        seen.way = way  # type: ignore[assignment]
        watch.end(seen, 200)
    watch.end(watch.begin("POST /a"), 500)
    watch.begin("POST /a")
    steady[0] += 2.0
    pulse.take()
    (sample,) = pulse.samples()
    assert (sample.at, sample.requests, sample.replays, sample.conflicts) == (5000, 2.5, 0.5, 0.5)
    assert (sample.failed, sample.refused, sample.in_flight) == (0.5, 0.0, 1)
    assert sample.p50 is not None
    steady[0] += 2.0
    pulse.take()
    assert pulse.samples()[-1][1:] == (0, 0, 0, 0, 0, 0, None, None, None, 1)


def test_a_quantile_lies_in_its_bucket() -> None:
    times = [0] * 19
    times[4] = 100
    assert quantile(times, 0.5) == pytest.approx(0.75)
    assert quantile([0] * 18 + [3], 0.99) == 30_000
