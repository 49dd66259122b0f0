"""Pages of what is rare, as steps of named SQL: window after window of what an index has, so that
each step takes a moment, however much there is."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

from oncekey.core.looking import Looked
from oncekey.stores.requests import Row, Step

# What is common is found in the first one.
_FIRST, _GROWTH, _LARGEST = 1_000, 5, 25_000
LAST = (1 << 63) - 1


class Span(NamedTuple):
    """Where to look: numbers of `lowest` and above."""

    rows: str
    """The query for rows of numbers below `before`, and of `since` and above, newest first."""
    edge: str | None
    """The query for the number which is `skip` places below the first; None for what needs no
    windows: all of it is asked for, or there are not many."""
    values: dict[str, Any]
    lowest: int = 0
    weight: int = 1
    """How much more it is to look at one of these: they do not lie together, or in one table."""


def look_through(
    spans: Sequence[Span], before: int | None, limit: int, look: int | None
) -> Generator[Step, list[Row], Looked[Row]]:
    """Span after span, newest first, until there are `limit` rows or `look` were looked at."""
    found: Looked[Row] = Looked()
    left = LAST if look is None else look
    top = LAST if before is None else before
    for span in spans:
        size = _FIRST if span.edge else left
        while top > span.lowest and len(found) < limit:
            if left <= 0:
                found.to = top
                return found
            size = max(1, min(size, left // span.weight))
            since = span.lowest
            if span.edge:
                place = {"before": top, "lowest": span.lowest, "skip": size - 1}
                edge = yield span.edge, {**span.values, **place}
                since = edge[0][0] if edge else since
            place = {"before": top, "since": since, "limit": limit - len(found)}
            found += yield span.rows, {**span.values, **place}
            top, left = since, left - size * span.weight if span.edge else left
            size = min(size * _GROWTH, _LARGEST)
    return found
