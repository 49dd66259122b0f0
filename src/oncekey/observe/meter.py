"""Counters and histograms of one process, cheap enough for every request: a lookup and an addition.

Labels are bounded: what is beyond a bound counts under `other`, so that nobody who makes up
tenants or paths makes up series.
"""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path
from typing import Any

from oncekey.observe.bound import Bound
from oncekey.observe.catalog import (
    BATCH_SIZE,
    BOUNDS,
    BY_EVENT,
    COMMIT_SECONDS,
    DELIVERIES,
    DELIVERY,
    OTHER,
    REQUEST_SECONDS,
    SWEEP_SECONDS,
    SWEPT,
    TAKEOVERS,
    TIMES,
)
from oncekey.observe.snapshot import Counts, Snapshot

MOST_TENANTS = 100
MOST_ENDPOINTS = 200
_MOST_DETAILS = 64
_MOST_SERIES = 10_000
# A cache of what leads to a series: namespaces have subjects in them, which are never bounded.
_MOST_REMEMBERED = 8192
_NOBODY = ("unknown", "unknown")

Labels = tuple[str, ...]
Cell = list[Any]
"""Of a counter its value; of a histogram how many fell below each bound and above, and the sum.

Threads may share one. `cell[0] += 1` runs without a switch between reading and writing: the
interpreter switches threads only at calls and jumps."""


class Meter:
    """`folder` is what the processes of one server share, if there are several."""

    def __init__(
        self,
        *,
        store: str = "",
        max_tenants: int = MOST_TENANTS,
        max_endpoints: int = MOST_ENDPOINTS,
        folder: Path | None = None,
    ) -> None:
        self.store = store
        self.in_flight = 0
        self.counts: Counts | None = None
        """What the store holds, when somebody last looked."""
        self._counters: dict[str, dict[Labels, Cell]] = {}
        self._histograms: dict[str, dict[Labels, Cell]] = {}
        self._by_event: dict[tuple[str, str, str, str | int], Cell] = {}
        self._by_way: dict[tuple[str, str], Cell] = {}
        self._pairs = Bound(max_tenants, folder and folder / "tenants")
        self._endpoints = Bound(max_endpoints, folder and folder / "endpoints")
        self._details: dict[str, Bound] = {}
        self._sizes = self._histogram(BATCH_SIZE, (store,))
        self._commits = self._histogram(COMMIT_SECONDS, (store,))
        self._sweeps = self._histogram(SWEEP_SECONDS, ())
        self._swept = self._counter(SWEPT, ())

    # -- on the way of requests ----------------------------------------------------------

    def count(self, event: str, endpoint: str, namespace: str = "", detail: str | int = "") -> None:
        """Observe: the `Observer` of a ledger."""
        try:
            self._by_event[event, endpoint, namespace, detail][0] += 1
        except KeyError:
            self.cell(event, endpoint, namespace, detail)[0] += 1

    def time(self, endpoint: str, way: str, seconds: float) -> None:
        """A request was answered."""
        try:
            cell = self._by_way[endpoint, way]
        except KeyError:
            cell = self.cell_of_way(endpoint, way)
        cell[bisect_left(TIMES, seconds)] += 1
        cell[-1] += seconds

    def committed(self, size: int, seconds: float) -> None:
        _add(self._sizes, BATCH_SIZE, size)
        _add(self._commits, COMMIT_SECONDS, seconds)

    def swept(self, deleted: int, seconds: float) -> None:
        self._swept[0] += deleted
        _add(self._sweeps, SWEEP_SECONDS, seconds)

    def snapshot(self) -> Snapshot:
        """All of it as it is now. Others may count meanwhile."""
        return Snapshot(
            {name: _values(cells) for name, cells in list(self._counters.items())},
            {name: _values(cells) for name, cells in list(self._histograms.items())},
            self.in_flight,
            self.counts,
        )

    # -- the first time ------------------------------------------------------------------

    def cell(self, event: str, endpoint: str, namespace: str, detail: str | int) -> Cell:
        """Where an event is counted: for whoever counts it often."""
        if len(self._by_event) >= _MOST_REMEMBERED:
            self._by_event.clear()
        cell = self._by_event[event, endpoint, namespace, detail] = self._cell_of(
            event, endpoint, namespace, str(detail)
        )
        return cell

    def _cell_of(self, event: str, endpoint: str, namespace: str, detail: str) -> Cell:
        whose = self._whose(namespace)
        if event.startswith(DELIVERY):
            provider = self._detail(DELIVERIES, detail)
            return self._counter(DELIVERIES, (*whose, provider, event.removeprefix(DELIVERY)))
        name = BY_EVENT.get(event)
        if name is None:
            return [0]
        where = self._endpoint(endpoint)
        if name == TAKEOVERS:
            return self._counter(name, (where,))
        if not detail:
            return self._counter(name, (*whose, where))
        return self._counter(name, (*whose, where, self._detail(name, detail)))

    def cell_of_way(self, endpoint: str, way: str) -> Cell:
        if len(self._by_way) >= _MOST_REMEMBERED:
            self._by_way.clear()
        cell = self._histogram(REQUEST_SECONDS, (self._endpoint(endpoint), way))
        self._by_way[endpoint, way] = cell
        return cell

    def _whose(self, namespace: str) -> tuple[str, str]:
        tenant, _, rest = namespace.removeprefix("t-").partition(":")
        pair = (tenant, rest.partition(":")[0]) if tenant else _NOBODY
        return pair if self._pairs.admits(pair) else (OTHER, OTHER)

    def _endpoint(self, endpoint: str) -> str:
        return endpoint if self._endpoints.admits(endpoint) else OTHER

    def _detail(self, name: str, detail: str) -> str:
        bound = self._details.setdefault(name, Bound(_MOST_DETAILS))
        return detail if bound.admits(detail) else OTHER

    def _counter(self, name: str, labels: Labels) -> Cell:
        return _cell_in(self._counters.setdefault(name, {}), labels, 1)

    def _histogram(self, name: str, labels: Labels) -> Cell:
        # One more for what is above all bounds, and the sum.
        return _cell_in(self._histograms.setdefault(name, {}), labels, len(BOUNDS[name]) + 2)


def _cell_in(cells: dict[Labels, Cell], labels: Labels, size: int) -> Cell:
    if labels not in cells and len(cells) >= _MOST_SERIES:
        labels = (OTHER,) * len(labels)
    return cells.setdefault(labels, [0] * size)


def _add(cell: Cell, name: str, value: float) -> None:
    cell[bisect_left(BOUNDS[name], value)] += 1
    cell[-1] += value


def _values(cells: dict[Labels, Cell]) -> list[tuple[Labels, Cell]]:
    return [(labels, cell.copy()) for labels, cell in list(cells.items())]
