"""The loop that finds ticks that are due and has them dispatched. Any number may run side by side.

A tick is dispatched first and moved past afterwards. Between the two its key holds the effect at
one: a process that dies there leaves a tick that is dispatched again, and had already.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from oncekey.core.errors import LedgerClosed, OnceKeyError
from oncekey.core.ledger import Ledger
from oncekey.core.schedules import (
    DuePage,
    DueSchedules,
    FindSchedule,
    StoredSchedule,
    TickTaken,
)
from oncekey.core.steps import Steps
from oncekey.durable.engine import Engine
from oncekey.schedules import keeping
from oncekey.schedules.calling import Done, Post
from oncekey.schedules.dispatch import Dispatcher, Elsewhere, NotHere
from oncekey.schedules.missed import Turn, turn_of
from oncekey.schedules.schedule import CallUrl, Origin, Schedule, Spec, decode_spec, key_of
from oncekey.schedules.timing import timing_of

if TYPE_CHECKING:
    import httpx

log = logging.getLogger("oncekey")

# How soon a schedule is seen that another process has declared or resumed.
_LOOK_EVERY = 1000
_PAGE = 100
# Ticks of one schedule that are made up for in one go; then others have their turn.
_CATCH_UP = 1000
_AT_ONCE = 256
_LONGEST_REST = 60_000


class Ran(NamedTuple):
    """A tick that came to its end in this scheduler, or was found to have done so elsewhere."""

    key: str
    ok: bool
    text: str


class Scheduler:
    """`async with Scheduler(ledger, engine, schedules): …` declares the schedules and runs them,
    with every other one that is in the store.

    Without an engine it leaves workflows to others. `client` is the caller's own `httpx` client;
    `backoff` the first pause between two attempts to call an address, and `grace` how long what is
    under way may take when the scheduler is told to stop, both in seconds.
    """

    def __init__(
        self,
        ledger: Ledger,
        engine: Engine | None = None,
        schedules: Sequence[Schedule] = (),
        *,
        client: httpx.AsyncClient | None = None,
        environ: Mapping[str, str] | None = None,
        origin: Origin = "code",
        backoff: float = 1.0,
        grace: float = 10.0,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._ledger = ledger
        self._clock = ledger.clock
        self._schedules = tuple(schedules)
        self._origin = origin
        self._grace = grace
        self._post = Post(ledger.clock, client, backoff=backoff, chance=chance)
        secrets = {
            each.id: each.target.secret
            for each in self._schedules
            if isinstance(each.target, CallUrl) and each.target.secret is not None
        }
        environment = os.environ if environ is None else environ
        self._dispatcher = Dispatcher(ledger, engine, self._post, secrets, environment)
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._running: dict[str, asyncio.Task[list[Ran]]] = {}
        self._rests: dict[str, _Rest] = {}
        self._stopping = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.declare()
        self._loop = asyncio.create_task(self._run(), name="oncekey-scheduler")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def declare(self) -> None:
        """Keep the schedules this was made with; the loop does so when it starts."""
        await self._ledger.arun(keeping.declare(self._schedules, self._origin, self._clock))

    async def pause(self, schedule_id: str) -> StoredSchedule:
        return await self._ledger.arun(keeping.pause(schedule_id, self._clock))

    async def resume(self, schedule_id: str) -> StoredSchedule:
        return await self._ledger.arun(keeping.resume(schedule_id, self._clock))

    async def run_once(self, now: int | None = None) -> list[Ran]:
        """Dispatch everything that is due, and wait for it."""
        await self._look(self._clock.now() if now is None else now)
        done = await asyncio.gather(*self._running.values())
        return [ran for each in done for ran in each]

    async def close(self) -> None:
        """Begin nothing more; give what is under way its grace, then leave it to others."""
        self._stopping.set()
        if self._loop is not None:
            await self._loop
        if self._running:
            _, late = await asyncio.wait(self._running.values(), timeout=self._grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._post.close()

    # -- the loop ------------------------------------------------------------------------

    async def _run(self) -> None:
        while not self._stopping.is_set():
            now = self._clock.now()
            wake_at = now + _LOOK_EVERY
            try:
                next_at = await self._look(now)
                wake_at = min(wake_at, next_at or wake_at)
            except LedgerClosed:
                return
            except OnceKeyError as error:
                log.warning("schedules cannot be looked at: %s", error)
            except Exception:
                # Nobody else would start the loop again.
                log.exception("schedules cannot be looked at")
            with suppress(TimeoutError):
                pause = max(0, wake_at - self._clock.now()) / 1000
                await asyncio.wait_for(self._stopping.wait(), pause)

    async def _look(self, now: int) -> int | None:
        """Begin with what is due and is not begun with; answers when the next tick comes."""
        page: DuePage = await self._ask(DueSchedules(now, limit=_PAGE))
        while True:
            for stored in page.schedules:
                self._begin(stored, now)
            if len(page.schedules) < _PAGE:
                return page.next_at
            last = page.schedules[-1]
            page = await self._ask(DueSchedules(now, (last.next_at, last.id), _PAGE))

    def _begin(self, stored: StoredSchedule, now: int) -> None:
        rest = self._rests.get(stored.id)
        if stored.id in self._running or (rest and rest.until > self._clock.steady()):
            return
        task = asyncio.create_task(self._work(stored, now), name=f"oncekey-{stored.id}")
        self._running[stored.id] = task
        task.add_done_callback(lambda _: self._running.pop(stored.id, None))

    # -- one schedule --------------------------------------------------------------------

    async def _work(self, stored: StoredSchedule | None, now: int) -> list[Ran]:
        """The ticks of one schedule that are due, one after the other."""
        ran: list[Ran] = []
        try:
            async with self._at_once:
                while stored and not stored.paused and stored.next_at <= now:
                    if len(ran) == _CATCH_UP:
                        log.warning(
                            "schedule %s: made up for %d ticks, more to come", stored.id, len(ran)
                        )
                        break
                    if not await self._step(stored, now, ran):
                        break
                    stored = await self._ask(FindSchedule(stored.id))
        except OnceKeyError as error:
            self._rest(stored, str(error))
        except Exception:
            log.exception("schedule %s: dispatching a tick failed", stored and stored.id)
            self._rest(stored, "")
        return ran

    async def _step(self, stored: StoredSchedule, now: int, ran: list[Ran]) -> bool:
        """Dispatch the tick whose turn it is, and move past it. False when it cannot be now."""
        spec = decode_spec(stored)
        turn = turn_of(timing_of(spec.timing), spec.missed, stored.next_at, now)
        if turn.tick is not None:
            match await self._dispatcher.dispatch(stored, spec, turn.tick):
                case Elsewhere():
                    return False
                case NotHere(reason):
                    self._rest(stored, reason)
                    return False
                case Done(ok, text):
                    ran.append(Ran(key_of(stored.id, turn.tick), ok, text))
        self._rests.pop(stored.id, None)
        self._tell_dropped(stored, spec, turn)
        moved = TickTaken(stored.id, stored.next_at, turn.next_at, turn.tick, self._clock.now())
        await self._ask(moved)
        return True

    def _tell_dropped(self, stored: StoredSchedule, spec: Spec, turn: Turn) -> None:
        if turn.dropped_from is not None:
            log.warning(
                "schedule %s: ticks from %d until before %d are left out (missed = %s)",
                stored.id,
                turn.dropped_from,
                turn.tick or turn.next_at,
                spec.missed,
            )

    def _rest(self, stored: StoredSchedule | None, reason: str) -> None:
        """Look at it again after a while, each time a longer one."""
        if stored is None:
            return
        before = self._rests.get(stored.id)
        length = min(before.length * 2, _LONGEST_REST) if before else _LOOK_EVERY
        self._rests[stored.id] = _Rest(self._clock.steady() + length, length)
        if reason:
            log.warning("schedule %s: tick %d waits: %s", stored.id, stored.next_at, reason)

    async def _ask(self, request: Any) -> Any:
        return await self._ledger.arun(_asking(request))


class _Rest(NamedTuple):
    until: int
    length: int


def _asking(request: Any) -> Steps[Any]:
    return (yield request)
