"""What dead processes left behind, as steps of named SQL: window after window of what came after
their floors, which may be all there is, so that each step takes a moment."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple

from oncekey.core.model import Record
from oncekey.stores.requests import Row, Setting, Step, found_of
from oncekey.stores.rows import OWNER_NAME
from oncekey.stores.windows import LAST

WINDOW = 10_000


class Dead(NamedTuple):
    """A process that is gone."""

    owner: int
    name: str
    floor: int
    heartbeat: int
    """The last it gave."""
    until: int | None = None
    """When the first claim that it still holds is past its time; None when it holds nothing."""


def dead(setting: Setting) -> Generator[Step, list[Row], list[Dead]]:
    gone = []
    for number, name, boot, silence, floor, heartbeat in (yield "owners", {}):
        columns: Sequence[Any] = (*(None,) * OWNER_NAME, name, boot, silence)
        if number != setting.owner and setting.is_gone(columns):
            gone.append(Dead(number, name, floor, heartbeat))
    untils = yield from _first_held({each.owner: each.floor for each in gone})
    return [each._replace(until=untils.get(each.owner)) for each in gone]


def _first_held(floors: Mapping[int, int]) -> Generator[Step, list[Row], dict[int, int]]:
    """When the first claim is past its time of each who holds any. All are looked for at once: a
    fleet that was killed has many, and what came after them is the same."""
    found: dict[int, int] = {}

    def is_enough(rows: list[Row]) -> bool:
        for owner, expires_at in rows:
            found.setdefault(owner, expires_at)
        return len(found) == len(floors)

    if floors:
        owners = {"owners": json.dumps(sorted(floors))}
        yield from _look(min(floors.values()), "first_held", owners, is_enough)
    return found


def left_behind(
    gone: Sequence[Dead], now: int, setting: Setting, most: int
) -> Generator[Step, list[Row], list[Record]]:
    """Claims past their time whose holders are gone.

    They are looked for when the first of a holder's is: before that, a day of keys would be read at
    every sweep to find nothing. Its others may have to wait for the first, which is no matter:
    expiry is exact whether or not something is swept.
    """
    found: list[Record] = []

    def is_enough(rows: list[Row]) -> bool:
        told = (found_of(row, setting) for row in rows)
        # One that nobody holds is among those of a window, too.
        known = {each.id for each in found}
        found.extend(each.record for each in told if each.lapsed and each.record.id not in known)
        return len(found) >= most

    floors = [each.floor for each in gone if each.until is not None and each.until <= now]
    if not is_enough((yield "expired_abandoned", {"now": now})) and floors:
        yield from _look(min(floors), "expired_claims", {"now": now}, is_enough)
    return found[:most]


def _look(
    since: int, query: str, values: dict[str, Any], is_enough: Callable[[list[Row]], bool]
) -> Generator[Step, list[Row], None]:
    """Upwards until it is enough, or there is nothing more to look at."""
    while True:
        ahead = yield "claims_ahead", {"since": since, "skip": WINDOW}
        to = ahead[0][0] if ahead else LAST
        if is_enough((yield query, {**values, "since": since, "to": to})) or not ahead:
            return
        since = to
