"""Interleaved rounds: everybody takes turns, and a ratio never leaves its round.

A shared machine drifts within seconds, so the bare application is measured again after every
few contenders, and each contender is divided by the mean of the two bare samples around it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from statistics import median

BETWEEN_BARE = 3


@dataclass(frozen=True)
class Spread:
    """Ratios of all rounds: the median, and how far they lay apart."""

    median: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}–{self.high:.2f})"


def spread_of(values: Sequence[float]) -> Spread:
    return Spread(median(values), min(values), max(values), len(values))


def turns(bare: str, others: Sequence[str], number: int, between: int = BETWEEN_BARE) -> list[str]:
    """The order of one round: rotated each round, reversed every other, bare around each few."""
    start = number * between % max(len(others), 1)
    order = [*others[start:], *others[:start]]
    if number % 2:
        order.reverse()
    sequence = [bare]
    for first in range(0, len(order), between):
        sequence += [*order[first : first + between], bare]
    return sequence


def ratios(
    sequence: Sequence[str], figures: Sequence[float], bare: str
) -> Iterator[tuple[str, float]]:
    """Each contender's figure over the mean of the bare figures before and after it."""
    places = [place for place, name in enumerate(sequence) if name == bare]
    for place, name in enumerate(sequence):
        if name != bare:
            before = max(other for other in places if other < place)
            after = min(other for other in places if other > place)
            yield name, figures[place] / ((figures[before] + figures[after]) / 2)


def run_round(
    bare: str,
    others: Sequence[str],
    number: int,
    measure: Callable[[str], float],
    between: int = BETWEEN_BARE,
) -> dict[str, float]:
    """Measures one round; the ratio of everybody who lasted it (`measure` answers nan if not)."""
    sequence = turns(bare, others, number, between)
    figures = [measure(name) for name in sequence]
    return {name: ratio for name, ratio in ratios(sequence, figures, bare) if not isnan(ratio)}
