"""The runs of this process: started, picked up, woken, laid down, put out when there are many."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from oncekey.core.answers import Owned, Picked, Woken
from oncekey.core.errors import StoreUnavailable
from oncekey.core.execution import Execution, Sort, Status
from oncekey.core.work import Ending, HandBack, Load, Mine, PickUp, Start
from oncekey.durable.embedded.run import Run
from oncekey.durable.embedded.running import drive
from oncekey.durable.embedded.spans import Spans
from oncekey.durable.embedded.starting import Starting

if TYPE_CHECKING:
    from oncekey.durable.definition import Definition
    from oncekey.durable.embedded.asking import Asking
    from oncekey.durable.embedded.events import EventMatching
    from oncekey.durable.embedded.timers import Timers
    from oncekey.durable.embedded.watching import Watching

log = logging.getLogger("oncekey")

_THREADS = 32
_AT_ONCE = 100
_FLUSH_TIMEOUT = 5.0


class Runs:
    """`concurrency`: how many run at once; `resident`: how many of those that wait are kept ready
    to go on, the rest is replayed from the journal when it is woken."""

    timers: Timers
    events: EventMatching

    def __init__(
        self,
        asking: Asking,
        watching: Watching,
        definitions: dict[tuple[Sort, str], Definition],
        *,
        concurrency: int,
        resident: int,
    ) -> None:
        self.asking = asking
        self.watching = watching
        self.definitions = definitions
        self.starting = Starting(asking, definitions)
        self.loop = asyncio.get_running_loop()
        self.threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="oncekey-step")
        self.closing = False
        known = definitions.values()
        self._unlimited = tuple(each.place for each in known if each.concurrency is None)
        self._concurrency = concurrency
        self._resident = resident
        self._spans = Spans(asking.ledger)
        self._runs: dict[int, Run] = {}
        self._lying: OrderedDict[int, Run] = OrderedDict()
        self._running: Counter[tuple[Sort, str]] = Counter()
        self._count = 0
        self._picking: asyncio.Task[None] | None = None
        self._again = self._starved = False
        self._missing: set[tuple[int, int]] = set()
        self._background: set[asyncio.Task[Any]] = set()
        self._picks: set[asyncio.Task[None]] = set()
        self.torn: set[Run] = set()

    # -- beginning -----------------------------------------------------------------------

    def room_for(self, definition: Definition) -> int:
        """How many more of these may run here now."""
        room = 0 if self.closing else self._concurrency - self._count
        limit = definition.concurrency
        return room if limit is None else min(room, limit - self._running[definition.place])

    def reserve(self, definition: Definition) -> bool:
        """Keep a place for one that is about to be started, if there is room."""
        if self.room_for(definition) <= 0:
            return False
        self._count += 1
        self._running[definition.place] += 1
        return True

    def release(self, start: Start) -> None:
        """The start was not made: its place is free again."""
        execution = start.execution
        if execution.status is Status.RUNNING:
            self._free((execution.sort, execution.name))

    def launch(self, execution: Execution, definition: Definition) -> Run:
        """Run an execution that is this process's, in the place that was kept for it."""
        run = Run(self, execution, definition)
        self._runs[run.id] = run
        self._spans.begin(run)
        run.main = self.loop.create_task(drive(run), context=self._spans.inside(run))
        run.tasks.add(run.main)
        return run

    def start_of(self, tenant: str, definition: Definition, body: bytes, key: str | None) -> Start:
        """The start of a child."""
        return self.starting.start(tenant, definition.place, body, key, self)

    def spawned(self, start: Start) -> None:
        """A start has been made: run it if it is this process's."""
        execution = start.execution
        if execution.due_at is not None:
            self.timers.expect(execution.due_at)
        if execution.status is Status.RUNNING:
            self.launch(execution, self.definitions[execution.sort, execution.name])
        else:
            self.pick_up()
            self.watching.ring()

    def find(self, number: int) -> Run | None:
        return self._runs.get(number)

    def _free(self, place: tuple[Sort, str]) -> None:
        self._count -= 1
        self._running[place] -= 1
        if self._starved:
            self.pick_up()

    # -- waiting -------------------------------------------------------------------------

    def lies_down(self, run: Run) -> None:
        """It waits, and holds no place; the longest-waiting make room when there are too many."""
        if run.lying or run.closed:
            return
        run.lying = True
        self._spans.end(run)
        self._lying[run.id] = run
        self._free(run.definition.place)
        while len(self._lying) > self._resident:
            next(iter(self._lying.values())).close()

    def gets_up(self, run: Run) -> None:
        if self._lying.pop(run.id, None) is not None:
            run.lying = False
            self._spans.begin(run)
            self._count += 1
            self._running[run.definition.place] += 1

    def woken(self, woken: Woken) -> None:
        """Something was settled for an execution, by this process."""
        self._spans.resolved(woken.execution)
        run = self._runs.get(woken.execution)
        if woken.fence:
            self._adopted(run, woken)
        elif woken.ready:
            if run is not None:
                _ = self._pick(self._resume(run))
            else:
                self.pick_up()
                self.watching.ring()
        elif run is not None:
            run.settled(woken)
        else:
            self.watching.ring()

    @contextmanager
    def offering(self) -> Iterator[tuple[tuple[Sort, str], ...]]:
        """What this process may take in the moment it is woken, with a place kept for one of them:
        whatever is not limited by a number of its own."""
        if self.closing or self._count >= self._concurrency:
            yield ()
            return
        self._count += 1
        try:
            yield self._unlimited
        finally:
            self._count -= 1

    def _adopted(self, run: Run | None, woken: Woken) -> None:
        """It is this process's already: it goes on where its code stands, or is loaded."""
        # Only when nobody else has had it, and nothing else was settled, since it lay down.
        seen = run is not None and (run.fence + 1, run.wakes + 1) == (woken.fence, woken.wakes)
        if run is not None and run.lying and seen:
            self.gets_up(run)
            run.fence = woken.fence
            run.settled(woken)
        else:
            _ = self._pick(self._load(woken))

    async def _load(self, woken: Woken) -> None:
        picked = await self.asking.insist(Load(woken.execution, woken.fence))
        if isinstance(picked, Picked):
            self._take_all([picked])

    async def _resume(self, run: Run) -> None:
        """Go on where the code stands, if nobody else has picked it up."""
        request = PickUp((run.definition.place,), 1, self.asking.clock.now(), run.id)
        picked = await self.asking.insist(request)
        self._take_all(picked)
        # Unless it was this process, looking for whatever is ready.
        if not picked and run.lying:
            run.close()

    # -- picking up ----------------------------------------------------------------------

    def pick_up(self) -> None:
        """Look for what is ready, as far as there is room; once at a time."""
        self._again = True
        if self._picking is None and not self.closing:
            self._picking = self._pick(self._pick_up())

    async def _pick_up(self) -> None:
        try:
            while self._again and not self.closing:
                self._again = self._starved = False
                known = tuple(each for each in self.definitions.values() if not each.concurrency)
                if known:
                    await self._pick_up_some(known, self.room_for(known[0]))
                for definition in self.definitions.values():
                    if definition.concurrency:
                        await self._pick_up_some((definition,), self.room_for(definition))
        finally:
            self._picking = None

    async def _pick_up_some(self, definitions: tuple[Definition, ...], room: int) -> None:
        """At most as many as there is room for, which is kept for them meanwhile."""
        limit = min(room, _AT_ONCE)
        if limit <= 0:
            # Whatever ends here looks again.
            self._starved = True
            return
        names = tuple(each.place for each in definitions)
        self._count += limit
        self._running[names[0]] += limit
        try:
            picked = await self.asking.ask(PickUp(names, limit, self.asking.clock.now()))
        finally:
            self._count -= limit
            self._running[names[0]] -= limit
        self._take_all(picked)
        self._again = self._again or len(picked) == limit

    async def find_lost(self) -> None:
        """Hand back what is this process's by the store, and is not here: the answer that gave it
        to this process was lost. Looked at twice, for what is on its way here at this moment."""
        held = await self._owned()
        missing = {(each.id, each.fence) for each in held if each.id not in self._runs}
        lost, self._missing = missing & self._missing, missing
        if lost:
            await self.asking.ask(HandBack(tuple(lost)))
            self.pick_up()

    async def catch_up(self) -> None:
        """For runs that wait in one branch and work in another: what other processes have settled
        for them is only seen by looking."""
        self.torn = {run for run in self.torn if run.waiting and not run.lying and not run.closed}
        if not self.torn:
            return
        wakes = {(each.id, each.fence): each.wakes for each in await self._owned()}
        for run in self.torn:
            if wakes.get((run.id, run.fence), run.wakes) != run.wakes:
                self.background(run.catch_up())

    async def _owned(self) -> list[Owned]:
        """What the store has as running here, of what this engine runs."""
        found: list[Owned] = await self.asking.ask(Mine())
        return [each for each in found if (each.sort, each.name) in self.definitions]

    def hear(self) -> None:
        """Some process has rung."""
        self.pick_up()
        if self.torn and not self.closing:
            self.background(self.catch_up())

    def _take_all(self, picked: list[Picked]) -> None:
        for each in picked:
            execution = each.execution
            run = self._runs.get(execution.id)
            if run is not None and execution.fence - run.fence > 1:
                # Another process has had it meanwhile: the code does not stand where that left it.
                run.close()
                run = None
            if run is not None:
                self.gets_up(run)
                run.take(each)
                continue
            definition = self.definitions[execution.sort, execution.name]
            self._count += 1
            self._running[definition.place] += 1
            self.launch(execution, definition).take(each)

    # -- ending --------------------------------------------------------------------------

    def ended(self, run: Run, ending: Ending, now: int, callers: tuple[Woken, ...]) -> None:
        self.forget(run)
        status = ending.status
        over = run.execution._replace(
            status=status,
            result=ending.result,
            fence=run.fence,
            owner=0,
            completed_at=now if status.is_over else None,
            expires_at=now + ending.keep if status.is_over else None,
        )
        self.watching.ended(over)
        for woken in callers:
            self.woken(woken)

    def forget(self, run: Run) -> None:
        self._spans.end(run)
        if self._runs.get(run.id) is run:
            del self._runs[run.id]
        if self._lying.pop(run.id, None) is None:
            self._free(run.definition.place)

    def cancelled(self, number: int) -> None:
        """It was ended from outside."""
        run = self._runs.get(number)
        if run is not None:
            run.close()

    async def close(self, grace: float) -> None:
        """Let steps that are being done end, as far as there is time; others pick up the rest."""
        self.closing = True
        await self._steps_end(grace)
        running = [run for run in self._runs.values() if not run.lying]
        await asyncio.gather(*(self._flushed(run) for run in running))
        if self._picks:
            # What is on its way here is handed back, too.
            await asyncio.wait(self._picks, timeout=_FLUSH_TIMEOUT)
        held = tuple((run.id, run.fence) for run in self._runs.values() if not run.lying)
        for run in list(self._runs.values()):
            run.close()
        if held:
            await self._hand_back(held)
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        self.threads.shutdown(wait=False)

    async def _hand_back(self, held: tuple[tuple[int, int], ...]) -> None:
        try:
            await self.asking.ask(HandBack(held))
        except StoreUnavailable as error:
            # Others see that this process is gone; that is as good, only later.
            log.warning("what runs here was not handed over: %s", error)
        else:
            self.watching.ring()

    async def _steps_end(self, grace: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                while any(run.busy for run in self._runs.values()):  # noqa: ASYNC110 - at the end only
                    await asyncio.sleep(0.02)

    async def _flushed(self, run: Run) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_TIMEOUT):
                await run.settle_down()

    def _pick(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Take executions for this process in the background."""
        task = self._task(work)
        self._picks.add(task)
        task.add_done_callback(self._picks.discard)
        return task

    def background(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do it beside everything else; what it raises is logged."""
        _ = self._task(work)

    def _task(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = self.loop.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("durable work goes on after: %s", error)
