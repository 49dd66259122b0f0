"""Whole requests: how long they took and how they ended, for metrics, the log and traces."""

from __future__ import annotations

from bisect import bisect_left
from time import perf_counter
from typing import Any

from oncekey.core.events import Seen, Watch
from oncekey.core.model import Record
from oncekey.observe.catalog import TIMES
from oncekey.observe.meter import Cell, Meter
from oncekey.observe.requests import RequestLog

_BROKEN = 500
# Whoever is refused with a 5xx is refused by what is broken here or behind.
_BREAKS = frozenset({"new", "passed", "refused"})
_MOST_REPLAYS = 4096


class RequestWatch(Watch):
    """The observer to open a ledger with: `oncekey.open(url, observer=RequestWatch(Meter()))`."""

    def __init__(self, meter: Meter, log: RequestLog | None = None, tracing: Any = None) -> None:
        self.meter = meter
        self.tracing = tracing
        self._log = log
        self._tells_all = log is not None and log.tells_all
        self.observe = meter.count
        self._replays: dict[tuple[str, str, int], tuple[Cell, Cell, Cell]] = {}

    def begin(self, endpoint: str, began: float | None = None) -> Seen:
        self.meter.in_flight += 1
        return Seen(endpoint, perf_counter() if began is None else began)

    def end(self, seen: Seen, status: int) -> None:
        meter = self.meter
        meter.in_flight -= 1
        seconds = perf_counter() - seen.began
        if (status >= _BROKEN or not status) and seen.way in _BREAKS:
            seen.way = "failed"
        meter.time(seen.endpoint, seen.way, seconds)
        if self._log is not None:
            self._log.write(seen, status, seconds)
        if seen.span is not None:
            seen.span.end(seen, status)

    def replayed(
        self,
        endpoint: str,
        namespace: str,
        key: str,
        record: Record,
        status: int,
        began: float,
        policy: str = "",
    ) -> None:
        try:
            present, hits, times = self._replays[endpoint, namespace, status]
        except KeyError:
            present, hits, times = self._first_replay(endpoint, namespace, status)
        present[0] += 1
        hits[0] += 1
        seconds = perf_counter() - began
        times[bisect_left(TIMES, seconds)] += 1
        times[-1] += seconds
        if self._tells_all:
            assert self._log is not None
            seen = Seen(endpoint, began)
            seen.namespace, seen.key, seen.way, seen.case = namespace, key, "replay", "A"
            seen.policy, seen.source, seen.operation = policy, "header", record.id
            self._log.write(seen, status, seconds)

    def committed(self, size: int, seconds: float) -> None:
        self.meter.committed(size, seconds)

    def swept(self, deleted: int, seconds: float) -> None:
        self.meter.swept(deleted, seconds)

    def _first_replay(self, endpoint: str, namespace: str, status: int) -> tuple[Cell, Cell, Cell]:
        if len(self._replays) >= _MOST_REPLAYS:
            self._replays.clear()
        meter = self.meter
        cells = self._replays[endpoint, namespace, status] = (
            meter.cell("key-present", endpoint, namespace, "A"),
            meter.cell("replay", endpoint, namespace, status),
            meter.cell_of_way(endpoint, "replay"),
        )
        return cells
