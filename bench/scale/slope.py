"""How fast a figure grows over time."""

from collections.abc import Sequence
from statistics import linear_regression


def slope_of(samples: Sequence[dict[str, float]], figure: str) -> float:
    """By which it changes in an hour, as the straight line through all samples has it."""
    if len(samples) < 2:
        return 0.0
    times, values = [each["at"] for each in samples], [each[figure] for each in samples]
    return linear_regression(times, values).slope * 3600
