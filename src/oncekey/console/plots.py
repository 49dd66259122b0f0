"""Numbers as lines and bars: the attributes of SVG, which needs neither scripts nor styles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 240.0, 48.0


class Line(NamedTuple):
    points: str
    """Of a polyline."""
    area: str
    """Of a polygon below it."""
    highest: float
    last: float


class Bar(NamedTuple):
    x: float
    width: float


def line_of(values: Sequence[float], *, highest: float | None = None) -> Line:
    """The newest value is at the right end."""
    top = max(highest or 0.0, *values, 0.0) if values else 0.0
    step = WIDTH / max(len(values) - 1, 1)
    # Divided first: one over the least of numbers is too large for one.
    heights = [(HEIGHT - 4) * (value / top) if top else 0.0 for value in values]
    places = [
        f"{index * step:.1f},{HEIGHT - 2 - height:.1f}" for index, height in enumerate(heights)
    ]
    points = " ".join(places)
    area = f"0,{HEIGHT} {points} {WIDTH:.1f},{HEIGHT}" if places else ""
    return Line(points, area, top, values[-1] if values else 0.0)


def bar_of(start: float, end: float, first: float, last: float) -> Bar:
    """Where a span lies in a whole of 1000; never too thin to be seen."""
    whole = max(last - first, 1.0)
    x = max(0.0, min(996.0, (start - first) / whole * 1000))
    return Bar(round(x, 1), round(max(4.0, min(1000.0 - x, (end - start) / whole * 1000)), 1))
