"""How a server has been for the last minutes, as samples for a chart."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from oncekey.observe.catalog import REQUEST_SECONDS, TIMES
from oncekey.observe.snapshot import Snapshot

EVERY = 2.0
"""Seconds between two samples."""
_MOST = 300
_FASTEST = 0.001


class Sample(NamedTuple):
    """Since the one before it: requests in a second by their way, and their milliseconds."""

    at: int
    """In ms since 1970."""
    requests: float
    replays: float
    conflicts: float
    mismatches: float
    refused: float
    failed: float
    p50: float | None
    """None when nothing was answered."""
    p95: float | None
    p99: float | None
    in_flight: int


class _Totals(NamedTuple):
    taken_at: float
    ways: dict[str, int]
    times: list[int]


class Pulse:
    """`total` answers for all processes of the server."""

    def __init__(
        self,
        total: Callable[[], Snapshot],
        steady: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._total = total
        self._steady = steady
        self._now = now
        self._last: _Totals | None = None
        self._samples: deque[Sample] = deque(maxlen=_MOST)

    def samples(self) -> list[Sample]:
        """Oldest first, of the last ten minutes."""
        return list(self._samples)

    def take(self) -> None:
        """One more sample; the first time only what the next one is compared with."""
        snapshot = self._total()
        totals = self._totals_of(snapshot)
        last, self._last = self._last, totals
        if last is None:
            return
        seconds = max(_FASTEST, totals.taken_at - last.taken_at)
        ways = {way: max(0, count - last.ways.get(way, 0)) for way, count in totals.ways.items()}
        times = [max(0, new - old) for new, old in zip(totals.times, last.times, strict=True)]

        def rate(way: str) -> float:
            return ways.get(way, 0) / seconds

        self._samples.append(
            Sample(
                int(self._now() * 1000),
                sum(ways.values()) / seconds,
                rate("replay"),
                rate("conflict"),
                rate("mismatch"),
                rate("refused"),
                rate("failed"),
                quantile(times, 0.5),
                quantile(times, 0.95),
                quantile(times, 0.99),
                snapshot.in_flight,
            )
        )

    def _totals_of(self, snapshot: Snapshot) -> _Totals:
        ways: dict[str, int] = {}
        times = [0] * (len(TIMES) + 1)
        for (_, way), cell in snapshot.histograms.get(REQUEST_SECONDS, ()):
            counted = cell[:-1]
            ways[way] = ways.get(way, 0) + sum(counted)
            times = [one + other for one, other in zip(times, counted, strict=True)]
        return _Totals(self._steady(), ways, times)


def quantile(times: list[int], part: float) -> float | None:
    """Milliseconds that `part` of the requests stay below, as far as buckets can tell."""
    wanted = part * sum(times)
    if not wanted:
        return None
    below, low = 0, 0.0
    for high, count in zip(TIMES, times, strict=False):
        if below + count >= wanted:
            return 1000 * (low + (high - low) * (wanted - below) / count)
        below, low = below + count, high
    return 1000 * TIMES[-1]
