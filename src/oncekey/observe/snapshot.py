"""What a meter says at one moment, and the sum of what several say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

Labels = tuple[str, ...]
Series = list[tuple[Labels, list[Any]]]
"""Labels, and the cell of each."""
_Cells = dict[str, dict[Labels, list[Any]]]


class Counts(msgspec.Struct, array_like=True):
    """How much there is in the store: of all processes together, so that the newest one holds."""

    at: int
    claims: int
    oldest_claim_at: int | None
    promises: dict[str, int]
    workflows: dict[str, int]
    oldest_waiting_at: int | None


class Snapshot(msgspec.Struct, array_like=True):
    counters: dict[str, Series]
    histograms: dict[str, Series]
    in_flight: int = 0
    counts: Counts | None = None


def summed(snapshots: Iterable[Snapshot]) -> Snapshot:
    counters: _Cells = {}
    histograms: _Cells = {}
    in_flight, counts = 0, None
    for each in snapshots:
        _add(counters, each.counters)
        _add(histograms, each.histograms)
        in_flight += each.in_flight
        if each.counts is not None and (counts is None or counts.at < each.counts.at):
            counts = each.counts
    return Snapshot(_series_of(counters), _series_of(histograms), in_flight, counts)


def of_the_dead(snapshot: Snapshot) -> Snapshot:
    """What counts on when a process has ended: what it did, and not how it was."""
    return Snapshot(snapshot.counters, snapshot.histograms)


def _add(totals: _Cells, families: dict[str, Series]) -> None:
    for name, series in families.items():
        cells = totals.setdefault(name, {})
        for labels, values in series:
            known = cells.get(labels)
            if known is None:
                cells[labels] = list(values)
            else:
                known[:] = [one + other for one, other in zip(known, values, strict=True)]


def _series_of(cells: _Cells) -> dict[str, Series]:
    return {name: list(each.items()) for name, each in cells.items()}
