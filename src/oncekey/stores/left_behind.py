"""What dead processes left behind, as steps of named SQL: window after window of what came after
the lowest floor, which may be all there is, so that each step takes a moment."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from oncekey.core.model import Record
from oncekey.stores.requests import Row, Setting, Step, found_of
from oncekey.stores.windows import LAST

WINDOW = 10_000

Windows = Generator[Step, list[Row], bool]


def left_behind(now: int, setting: Setting, most: int) -> Generator[Step, list[Row], list[Record]]:
    """Claims past their time whose holders are gone, among those whose holders are not."""
    found: list[Record] = []

    def is_enough(rows: list[Row]) -> bool:
        told = (found_of(row, setting) for row in rows)
        found.extend(each.record for each in told if each.lapsed)
        return len(found) >= most

    floor = (yield "lowest_floor", {})[0][0]
    if not is_enough((yield "expired_abandoned", {"floor": floor, "now": now})):
        yield from _look(floor, "expired_claims", {"now": now}, is_enough)
    return found[:most]


def holds(owner: int, floor: int) -> Windows:
    """Whether this owner has a claim that is not settled; the first it may have is the floor."""
    return _look(floor, "holds", {"owner": owner}, bool)


def _look(
    since: int, query: str, values: dict[str, Any], is_enough: Callable[[list[Row]], bool]
) -> Windows:
    """Upwards until it is enough; False when there is nothing more to look at."""
    while True:
        ahead = yield "claims_ahead", {"since": since, "skip": WINDOW}
        to = ahead[0][0] if ahead else LAST
        if is_enough((yield query, {**values, "since": since, "to": to})):
            return True
        if not ahead:
            return False
        since = to
