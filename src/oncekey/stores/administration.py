"""Listing, sweeping and retention: what operators and timers do, the same on every SQL store."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

from oncekey.core.looking import Looked
from oncekey.core.model import Record
from oncekey.core.ports import Found, Query
from oncekey.stores.keys import list_keys
from oncekey.stores.plans import carry_out
from oncekey.stores.requests import Setting, drive, forget_expired, found_of
from oncekey.stores.rows import OWNER_NAME

_PAGE = 250

Rows = list[Any]
Run = Callable[[str, dict[str, Any]], Rows]
"""Runs the query of that name."""


class Transact(Protocol):
    """Runs `work` in one transaction. Without `durable` it may be undone by a power cut."""

    def __call__(
        self, work: Callable[[Run], Any], *, write: bool, durable: bool = False
    ) -> Any: ...


class Administration:
    def __init__(
        self,
        transact: Transact,
        setting: Callable[[], Setting],
        bury: Callable[[str], None],
    ) -> None:
        self._transact = transact
        self._setting = setting
        self._bury = bury

    def list(self, query: Query, now: int) -> Looked[Found]:
        rows = drive(list_keys(query, now), self._read)
        setting = self._setting()
        return Looked((found_of(row, setting) for row in rows), rows.to)

    def read(self, request: Any) -> Any:
        """Each step by itself: whoever else works here goes in between."""
        return drive(carry_out(request, self._setting()), self._read)

    def count_expired(self, now: int) -> int:
        settled = int(self._read("count_expired", {"now": now})[0][0])
        logged = int(self._read("count_expired_deliveries", {"now": now})[0][0])
        left = self._transact(lambda run: sum(1 for _ in self._left_behind(run, now)), write=False)
        return settled + logged + int(left)

    def sweep(self, now: int, batch: int) -> int:
        """Expired outcomes first; when there are none left, deliveries that were logged, and then
        what dead processes left behind."""
        for some in (_sweep_outcomes, _sweep_deliveries, self._sweep_claims):
            swept: int = self._transact(functools.partial(some, now=now, batch=batch), write=True)
            if swept:
                return swept
        self._transact(self._sweep_owners, write=True)
        return 0

    def sweep_due(self, now: int, interval: int) -> bool:
        values = {"name": "sweep", "now": now, "interval": interval}
        return bool(self._transact(lambda run: run("turn", values), write=True))

    def retention(self) -> dict[str, float]:
        return {name: float(seconds) for name, seconds in self._read("retention", {})}

    def set_retention(self, name: str, seconds: float) -> None:
        values = {"name": name, "seconds": seconds}
        self._transact(lambda run: run("set_retention", values), write=True, durable=True)

    def _sweep_claims(self, run: Run, now: int, batch: int) -> int:
        gone, setting = list(islice(self._left_behind(run, now), batch)), self._setting()
        return sum(drive(forget_expired(each.id, each.fence, now, setting), run) for each in gone)

    def _left_behind(self, run: Run, now: int) -> Iterator[Record]:
        """Claims past their time whose holders are gone, among those whose holders are not."""
        setting, after = self._setting(), 0
        while rows := run("expired_claims", {"now": now, "after": after, "limit": _PAGE}):
            for row in rows:
                found = found_of(row, setting)
                if found.lapsed:
                    yield found.record
                after = found.record.id

    def _sweep_owners(self, run: Run) -> None:
        """Processes that are gone and hold nothing any more."""
        setting = self._setting()
        for number, name, boot, heartbeat, floor, seen in run("owners", {}):
            columns: Sequence[Any] = (*(None,) * OWNER_NAME, name, boot, heartbeat)
            if number == setting.owner or not setting.is_gone(columns):
                continue
            if not run("held_by", {"owner": number, "floor": floor}):
                run("forget_owner", {"owner": number, "heartbeat": seen})
                self._bury(name)

    def _read(self, name: str, values: dict[str, Any]) -> Rows:
        rows: Rows = self._transact(lambda run: run(name, values), write=False)
        return rows


def _sweep_outcomes(run: Run, now: int, batch: int) -> int:
    numbers = [row[0] for row in run("sweep", {"now": now, "limit": batch})]
    if numbers:
        run("forget_claims", {"ids": json.dumps(numbers)})
    return len(numbers)


def _sweep_deliveries(run: Run, now: int, batch: int) -> int:
    return len(run("sweep_deliveries", {"now": now, "limit": batch}))
