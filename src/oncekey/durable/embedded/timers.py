"""What time brings: promises that are due, executions to pick up, and what may be forgotten."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from oncekey.core.errors import OnceKeyError, PromiseTimedOut, TerminalError
from oncekey.core.work import Due, Forget, Rewind
from oncekey.durable.embedded.watching import LOOK_AGAIN
from oncekey.durable.failure import encode_failure, failure_of

if TYPE_CHECKING:
    from oncekey.durable.embedded.runs import Runs

log = logging.getLogger("oncekey")

_AT_ONCE = 100
_FORGET_EVERY = 60_000
# Clocks of machines are as close as that, and a clock that goes a little slower is not set back.
_CLOSE = 1_000
# After a clock was set back it is looked so often for what began while it was ahead.
_LOOKS = 3
_FIND_LOST_EVERY = 10_000
_CONTROLS_KEPT = 7 * 24 * 3600 * 1000
_LATE = encode_failure(failure_of(PromiseTimedOut()))
_OVERDUE_ERROR = TerminalError("the execution was not over in time")
_OVERDUE_ERROR.code = "execution-timed-out"
_OVERDUE = encode_failure(failure_of(_OVERDUE_ERROR))


class Timers:
    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._asking = runs.asking
        self._clock = runs.asking.clock
        self._next: int | None = None
        self._sooner = asyncio.Event()
        self._forgot_at = self._looked_at = self._clock.steady()
        self._ahead = self._wall_ahead()
        # Nobody knows how the clock was before this process began.
        self._rewinds = _LOOKS
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def expect(self, due_at: int) -> None:
        """Something is due then; the timer does not sleep longer."""
        if self._next is None or due_at < self._next:
            self._next = due_at
            self._sooner.set()

    async def run_once(self) -> None:
        """Everything that is due by now."""
        await self._rewind()
        more = True
        while more:
            ripe = await self._asking.ask(Due(self._clock.now(), _LATE, _OVERDUE, _AT_ONCE))
            self._next = ripe.next_at
            for woken in ripe.woken:
                self._runs.woken(woken)
                self._runs.watching.changed(woken.promise)
            for number in ripe.alone:
                self._runs.watching.changed(number)
            for number in ripe.ended:
                self._runs.cancelled(number)
                self._runs.watching.changed(number)
            more = len(ripe.woken) >= _AT_ONCE
        self._runs.pick_up()
        await self._runs.catch_up()
        await self._runs.events.match_left_over()
        await self._look_after()

    async def _run(self) -> None:
        while True:
            try:
                await self.run_once()
            except OnceKeyError as error:
                self._next = None
                log.warning("durable work waits for its store: %s", error)
            except Exception:
                # Whatever one look at the clock meets, there is a next one, after a pause.
                self._next = None
                log.exception("what is due could not be looked after")
            self._sooner.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause()):
                    await self._sooner.wait()

    def _pause(self) -> float:
        if self._next is None:
            return LOOK_AGAIN
        return min(LOOK_AGAIN, max(0.0, (self._next - self._clock.now()) / 1000))

    async def _rewind(self) -> None:
        """What began while the clock was ahead would else be due when it is as late again."""
        before, self._ahead = self._ahead, self._wall_ahead()
        if self._ahead < before - _CLOSE:
            self._rewinds = _LOOKS
        if self._rewinds:
            self._rewinds -= 1
            await self._asking.ask(Rewind(self._clock.now(), _CLOSE))

    def _wall_ahead(self) -> int:
        return self._clock.now() - self._clock.steady()

    async def _look_after(self) -> None:
        """What need not be done often."""
        now = self._clock.steady()
        if now - self._looked_at >= _FIND_LOST_EVERY:
            self._looked_at = now
            await self._runs.find_lost()
        if now - self._forgot_at >= _FORGET_EVERY:
            self._forgot_at = now
            await self._forget()

    async def _forget(self) -> None:
        """In small bites."""
        now = self._clock.now()
        while await self._asking.ask(Forget(now, now - _CONTROLS_KEPT)):
            pass
