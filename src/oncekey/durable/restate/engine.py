"""The engine on Restate: the runs, contexts and journals of the embedded one, and nothing that
polls. What is ready is dispatched, and what is due is timed, by the objects of the store."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from oncekey.core.execution import Sort
from oncekey.durable.embedded.engine import EmbeddedEngine
from oncekey.durable.restate.runs import AT_ONCE, RestateRuns
from oncekey.durable.restate.timers import RestateTimers
from oncekey.stores.restate.dispatch import run_service_of

if TYPE_CHECKING:
    from oncekey.durable.embedded.asking import Asking
    from oncekey.durable.embedded.runs import Runs
    from oncekey.durable.embedded.watching import Watching


class RestateEngine(EmbeddedEngine):
    _desk: Desk | None = None

    async def open(self) -> None:
        await super().open()
        runs = self._runs
        assert isinstance(runs, RestateRuns)
        if not self._definitions:
            return
        store: Any = self._ledger.store
        places = {run_service_of(store.place.space, *each): each for each in self._definitions}
        desk = self._desk = Desk(runs, places)
        try:
            await store.arun(lambda cluster: cluster.runners.add(desk, places))
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Restate asks others from now on, or later."""
        desk, self._desk = self._desk, None
        store: Any = self._ledger.store
        if desk is not None:
            await store.arun(lambda cluster: cluster.runners.remove(desk))
        await super().close()

    def _new_runs(self, asking: Asking, watching: Watching) -> Runs:
        runs = RestateRuns(asking, watching, self._definitions, **self._limits)
        runs.timers = RestateTimers(runs)
        return runs


class Desk:
    """Where calls from Restate, on the loop of the store, come to the runs, on theirs."""

    def __init__(self, runs: RestateRuns, places: dict[str, tuple[Sort, str]]) -> None:
        self._runs = runs
        self._places = places

    def has(self, number: int) -> bool:
        return self._runs.has(number)

    async def activate(
        self, service: str, number: int, dispatch: int, *, again: bool
    ) -> float | None:
        if self._runs.loop.is_closed():
            # Its loop has ended without a word: nobody is here.
            return AT_ONCE
        work = self._runs.activate(self._places[service], number, dispatch, again=again)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._runs.loop))
