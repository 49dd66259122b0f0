"""Listing, sweeping and retention: what operators and timers do, the same on every SQL store."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from oncekey.core.model import State
from oncekey.core.ports import Found, Query
from oncekey.stores.requests import Setting, found_of

Execute = Callable[[str, dict[str, Any]], list[Any]]


class Transact(Protocol):
    def __call__(self, work: Callable[[Execute], Any], *, write: bool) -> Any: ...


class Administration:
    def __init__(
        self,
        queries: dict[str, str],
        transact: Transact,
        setting: Callable[[], Setting],
        bury: Callable[[str], None],
    ) -> None:
        self._queries = queries
        self._transact = transact
        self._setting = setting
        self._bury = bury

    def list(self, query: Query, now: int) -> list[Found]:
        in_progress = query.state is State.IN_PROGRESS
        values = {
            "before": (1 << 63) - 1 if query.before is None else query.before,
            "namespace": query.namespace,
            "prefix": query.prefix,
            "limit": query.limit,
        }
        if not in_progress:
            values |= {"state": None if query.state is None else int(query.state), "now": now}
        name = "list_in_progress" if in_progress else "list"
        rows = self._read(name, values)
        setting = self._setting()
        return [found_of(row, setting) for row in rows]

    def count_expired(self, now: int) -> int:
        return int(self._read("count_expired", {"now": now})[0][0])

    def sweep(self, now: int, batch: int) -> int:
        """Expired outcomes first; when there are none left, what dead processes left behind."""
        swept: int = self._transact(lambda run: self._sweep_outcomes(run, now, batch), write=True)
        if swept:
            return swept
        swept = self._transact(lambda run: self._sweep_claims(run, now, batch), write=True)
        if not swept:
            self._transact(self._sweep_owners, write=True)
        return swept

    def sweep_due(self, now: int, interval: int) -> bool:
        values = {"name": "sweep", "now": now, "interval": interval}
        return bool(self._transact(lambda run: run(self._queries["turn"], values), write=True))

    def retention(self) -> dict[str, float]:
        return {name: float(seconds) for name, seconds in self._read("retention", {})}

    def set_retention(self, name: str, seconds: float) -> None:
        values = {"name": name, "seconds": seconds}
        self._transact(lambda run: run(self._queries["set_retention"], values), write=True)

    def _sweep_outcomes(self, run: Execute, now: int, batch: int) -> int:
        rows = run(self._queries["sweep"], {"now": now, "limit": batch})
        self._forget_claims(run, [row[0] for row in rows])
        return len(rows)

    def _sweep_claims(self, run: Execute, now: int, batch: int) -> int:
        rows = run(self._queries["expired_claims"], {"now": now, "limit": batch})
        setting = self._setting()
        gone = [row[0] for row in rows if found_of(row, setting).lapsed]
        self._forget_claims(run, gone)
        return len(gone)

    def _forget_claims(self, run: Execute, numbers: list[int]) -> None:
        if numbers:
            run(self._queries["forget_claims"], {"ids": json.dumps(numbers)})

    def _sweep_owners(self, run: Execute) -> None:
        """Processes that are gone and hold nothing any more."""
        setting = self._setting()
        for number, name, boot, heartbeat, floor in run(self._queries["owners"], {}):
            columns: Sequence[Any] = (*(None,) * 20, name, boot, heartbeat)
            if number == setting.owner or not setting.is_gone(columns):
                continue
            if not run(self._queries["held_by"], {"owner": number, "floor": floor}):
                run(self._queries["forget_owner"], {"owner": number})
                self._bury(name)

    def _read(self, name: str, values: dict[str, Any]) -> list[Any]:
        rows: list[Any] = self._transact(lambda run: run(self._queries[name], values), write=False)
        return rows
