"""The runs of this process that Restate has asked it for. Nothing is looked for: it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from oncekey.core.answers import Lost, Picked, Woken
from oncekey.core.errors import StoreUnavailable
from oncekey.core.execution import Sort
from oncekey.core.work import Ending, Load, Start
from oncekey.durable.embedded.run import Run
from oncekey.durable.embedded.runs import Runs
from oncekey.durable.restate.activation import Activation, Place, Queue
from oncekey.stores.restate.picking import Busy, Pick

if TYPE_CHECKING:
    from oncekey.durable.definition import Definition

# Whoever asked is answered by then, also when the execution goes on.
_HOLD = 1.0
# What this process cannot have run is soon another's.
AT_ONCE = 0.5
# While it goes on, somebody looks after so much of a lease whether its process still lives.
_OF_LEASE = 2 / 3


class RestateRuns(Runs):
    """A place is kept for an execution before it is picked; it waits for one here in memory, where
    Restate's own patience is not needed."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._activations: dict[int, Activation] = {}
        self._queue = Queue()
        self._catching: asyncio.Task[Any] | None = None
        store: Any = self.asking.store
        self._look_again: float = max(_HOLD, store.lease * _OF_LEASE)
        self._rung = False

    # -- what Restate asks for -------------------------------------------------------------

    def has(self, number: int) -> bool:
        return number in self._activations or number in self._runs

    async def activate(
        self, place: Place, number: int, dispatch: int, *, again: bool
    ) -> float | None:
        """Run it, if it became ready under this dispatch. Answers when somebody has to look after
        it again, in seconds; None when nobody has to."""
        if self.closing:
            return AT_ONCE
        known = self._activations.get(number)
        if known is not None and known.dispatch > dispatch:
            return None
        if known is None or known.dispatch < dispatch:
            known, again = self._new(known, place, number, dispatch), False
        if again and known.run is not None:
            # It may have been ended, or taken, while its code was busy.
            self.background(known.run.catch_up())
        with suppress(TimeoutError):
            async with asyncio.timeout(0 if again else _HOLD):
                return await asyncio.shield(known.over)
        return self._look_again

    def _new(
        self, before: Activation | None, place: Place, number: int, dispatch: int
    ) -> Activation:
        if before is not None:
            before.rests(None)
        made = self._activations[number] = Activation(place, number, dispatch)
        self._queue.put(made)
        self.pick_up()
        return made

    def _over(self, activation: Activation, wait: float | None) -> None:
        if self._activations.get(activation.number) is activation:
            del self._activations[activation.number]
        activation.rests(wait)

    def pick_up(self) -> None:
        """Begin with what was asked for, as far as there is room."""
        while (activation := self._queue.take(self._has_room)) is not None:
            if self._activations.get(activation.number) is activation:
                self._count += 1
                self._running[activation.place] += 1
                _ = self._pick(self._take(activation))
        self._starved = bool(self._queue)

    def _has_room(self, place: Place) -> bool:
        return self.room_for(self.definitions[place]) > 0

    async def _take(self, activation: Activation) -> None:
        """Its place is counted until it is here, or turns out to be somebody else's."""
        try:
            run = await self._goes_on(activation)
            answer = None if run is not None else await self._picked(activation)
        except BaseException:
            self._over(activation, AT_ONCE)
            raise
        finally:
            self._count -= 1
            self._running[activation.place] -= 1
        if isinstance(answer, Picked):
            self._take_all([answer])
            run = self._runs[activation.number]
        if run is None:
            self._over(activation, None if isinstance(answer, Lost) else self._look_again)
        elif run.lying or run.closed:
            self._over(activation, None if run.lying else self._look_again)
        activation.run = run
        if self._starved:
            self.pick_up()

    async def _goes_on(self, activation: Activation) -> Run | None:
        """The run, if it goes on here by itself and was dispatched only to be looked after."""
        run = self._runs.get(activation.number)
        if run is None or run.lying:
            return None
        answer = await self.asking.insist(Load(run.id, run.fence))
        return run if isinstance(answer, Picked) else None

    async def _picked(self, activation: Activation) -> Picked | Lost | Busy:
        asked = Pick(activation.number, activation.dispatch)
        answer: Picked | Lost | Busy = await self.asking.insist(asked)
        if isinstance(answer, Busy) and await self._is_gone(answer.owner):
            answer = await self.asking.insist(self._limited(asked._replace(gone=answer.owner)))
        return answer

    def _limited(self, asked: Pick) -> Pick:
        """An execution that ends every process that runs it is given up one day."""
        store: Any = self.asking.store
        most, what = store.options.max_attempts or 0, store.options.on_max_attempts
        return asked._replace(most=most, fails=what == "kill", now=self.asking.clock.now())

    async def _is_gone(self, owner: int) -> bool:
        """Whether the process that has the execution was not heard of for its lease."""
        store: Any = self.asking.store
        with suppress(StoreUnavailable):
            return bool(await store.arun(lambda cluster: cluster.life.is_gone(owner)))
        return False

    # -- beginning -------------------------------------------------------------------------

    def reserve(self, definition: Definition) -> bool:
        """What is started is dispatched."""
        return False

    def spawned(self, start: Start) -> None:
        """It is READY, and Restate is about to ask for it."""

    @contextmanager
    def offering(self) -> Iterator[tuple[tuple[Sort, str], ...]]:
        yield ()

    # -- waiting ---------------------------------------------------------------------------

    def lies_down(self, run: Run) -> None:
        super().lies_down(run)
        if run.lying:
            self._rests(run, None)

    def woken(self, woken: Woken) -> None:
        """Something was settled for an execution. What is READY is dispatched by the store."""
        self._spans.resolved(woken.execution)
        run = self._runs.get(woken.execution)
        if woken.ready:
            return
        if run is not None:
            run.settled(woken)
        else:
            self.watching.ring()

    # -- what others did -------------------------------------------------------------------

    def hear(self) -> None:
        """Some process has rung; rings that come meanwhile are one more."""
        self._rung = True
        if self._catching is None and self.torn and not self.closing:
            self._catching = self._task(self._catch_up())

    async def _catch_up(self) -> None:
        try:
            while self._rung:
                self._rung = False
                await self.catch_up()
        finally:
            self._catching = None

    async def catch_up(self) -> None:
        self.torn = {run for run in self.torn if run.waiting and not run.lying and not run.closed}
        for run in list(self.torn):
            if not run.closed:
                await run.catch_up()

    async def find_lost(self) -> None:
        """Nothing is: as long as it runs, Restate comes and looks."""

    # -- ending ----------------------------------------------------------------------------

    def ended(self, run: Run, ending: Ending, now: int, callers: tuple[Woken, ...]) -> None:
        self._rests(run, None)
        super().ended(run, ending, now, callers)

    def forget(self, run: Run) -> None:
        super().forget(run)
        self._rests(run, None if run.lying else self._look_again)

    def _rests(self, run: Run, wait: float | None) -> None:
        activation = self._activations.get(run.id)
        if activation is not None and activation.run is run:
            self._over(activation, wait)

    async def close(self, grace: float) -> None:
        self.closing = True
        for activation in list(self._activations.values()):
            if activation.run is None:
                self._over(activation, AT_ONCE)
        await super().close(grace)
