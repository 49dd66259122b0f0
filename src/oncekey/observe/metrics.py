"""What a meter says, in the forms that Prometheus reads. Own registry: nothing of the application's
is shown, and nothing of ours is added to it unless it asks for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from oncekey.observe.catalog import BOUNDS, COUNTERS, GAUGES, HISTOGRAMS
from oncekey.observe.meter import Meter
from oncekey.observe.snapshot import Counts, Snapshot

_OPEN = "application/openmetrics-text"
_HELP = {each.name: each.help for each in GAUGES}


class MeterCollector(Collector):
    """For a registry: `registry.register(MeterCollector(meter))`. `total` is asked in place of the
    meter where there is more than one."""

    def __init__(self, meter: Meter, total: Callable[[], Snapshot] | None = None) -> None:
        self._store = meter.store
        self._total = total or meter.snapshot

    def describe(self) -> list[Metric]:
        """Nothing beforehand: then nobody is asked when this is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        snapshot = self._total()
        for each in COUNTERS:
            counter = CounterMetricFamily(each.name, each.help, labels=each.labels)
            for labels, cell in snapshot.counters.get(each.name, ()):
                counter.add_metric(labels, cell[0])
            yield counter
        for each in HISTOGRAMS:
            histogram = HistogramMetricFamily(each.name, each.help, labels=each.labels)
            for labels, cell in snapshot.histograms.get(each.name, ()):
                histogram.add_metric(labels, _buckets(BOUNDS[each.name], cell), cell[-1])
            yield histogram
        yield _gauge("oncekey_requests_in_flight", snapshot.in_flight)
        if snapshot.counts is not None:
            yield from _census(snapshot.counts)
        info = GaugeMetricFamily(
            "oncekey_build_info", _HELP["oncekey_build_info"], labels=("version", "store")
        )
        info.add_metric((own_version(), self._store), 1)
        yield info


class Metrics:
    """The page of metrics of one process, or of several together."""

    def __init__(self, meter: Meter, total: Callable[[], Snapshot] | None = None) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(MeterCollector(meter, total))

    def page(self, accept: str) -> tuple[str, bytes]:
        """Its type and its text, as whoever asks accepts it. Blocks while it is made."""
        kinds = {each.partition(";")[0].strip() for each in accept.split(",")}
        # Of what else a stranger writes there, nothing is read.
        encode, kind = choose_encoder(_OPEN if _OPEN in kinds else "")
        return kind, encode(self._registry)


@lru_cache
def own_version() -> str:
    return version("oncekey")


def _buckets(bounds: tuple[float, ...], cell: list[Any]) -> list[tuple[str, float]]:
    found, below = [], 0
    for bound, count in zip([*map(str, bounds), "+Inf"], cell, strict=False):
        below += count
        found.append((bound, float(below)))
    return found


def _census(counts: Counts) -> Iterator[Metric]:
    # Ages as they were when it was counted: what has ended since then grows no older.
    yield _gauge("oncekey_claims_in_progress", counts.claims)
    yield _gauge("oncekey_oldest_claim_seconds", _age(counts.oldest_claim_at, counts.at))
    yield _gauge("oncekey_oldest_waiting_seconds", _age(counts.oldest_waiting_at, counts.at))
    for name, states in (
        ("oncekey_promises", counts.promises),
        ("oncekey_workflows", counts.workflows),
    ):
        gauge = GaugeMetricFamily(name, _HELP[name], labels=("state",))
        for state, number in states.items():
            gauge.add_metric((state,), number)
        yield gauge


def _age(since: int | None, now: int) -> float:
    return 0.0 if since is None else max(0, now - since) / 1000


def _gauge(name: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, _HELP[name], value=value)
