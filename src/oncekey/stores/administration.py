"""Listing, sweeping and retention: what operators and timers do, the same on every SQL store."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from oncekey.core.looking import Looked
from oncekey.core.model import Record
from oncekey.core.ports import Found, Query
from oncekey.stores.keys import list_keys
from oncekey.stores.left_behind import Dead, dead, left_behind
from oncekey.stores.plans import carry_out
from oncekey.stores.requests import Setting, drive, forget_expired, found_of
from oncekey.stores.windows import LAST

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
        return settled + logged + len(self._left_behind(self._dead(), now, LAST))

    def sweep(self, now: int, batch: int) -> int:
        """Expired outcomes first; when there are none left, deliveries that were logged, and then
        what dead processes left behind. To look for that takes long, and keeps nobody waiting."""
        for some in (_sweep_outcomes, _sweep_deliveries):
            swept: int = self._transact(functools.partial(some, now=now, batch=batch), write=True)
            if swept:
                return swept
        gone = self._dead()
        self._sweep_owners(gone)
        return self._sweep_claims(self._left_behind(gone, now, batch), now)

    def sweep_due(self, now: int, interval: int) -> bool:
        values = {"name": "sweep", "now": now, "interval": interval}
        return bool(self._transact(lambda run: run("turn", values), write=True))

    def retention(self) -> dict[str, float]:
        return {name: float(seconds) for name, seconds in self._read("retention", {})}

    def set_retention(self, name: str, seconds: float) -> None:
        values = {"name": name, "seconds": seconds}
        self._transact(lambda run: run("set_retention", values), write=True, durable=True)

    def _dead(self) -> Sequence[Dead]:
        return drive(dead(self._setting()), self._read)

    def _left_behind(self, gone: Sequence[Dead], now: int, most: int) -> Sequence[Record]:
        return drive(left_behind(gone, now, self._setting(), most), self._read)

    def _sweep_claims(self, gone: Sequence[Record], now: int) -> int:
        """Each is looked at again: its holder may be back."""
        setting = self._setting()

        def forget(run: Run) -> int:
            steps = (forget_expired(each.id, each.fence, now, setting) for each in gone)
            return sum(drive(each, run) for each in steps)

        return int(self._transact(forget, write=True)) if gone else 0

    def _sweep_owners(self, gone: Sequence[Dead]) -> None:
        """Forget those that hold nothing any more: they claim nothing without a new heartbeat,
        which keeps them from being forgotten."""
        for each in gone:
            values = {"owner": each.owner, "heartbeat": each.heartbeat}
            if each.until is None and self._forget_owner(values):
                self._bury(each.name)

    def _forget_owner(self, values: dict[str, Any]) -> bool:
        return bool(self._transact(lambda run: run("forget_owner", values), write=True))

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
