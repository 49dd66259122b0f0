"""One execution while its code is in this process: what it has done, and what it waits for.

Steps that end are journaled in the background and code goes on; nothing that touches the world is
begun before everything up to it is durable.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, NoReturn

from oncekey.core.answers import Advanced, Awaited, KeyTaken, Lost, Picked, Spawned, Woken
from oncekey.core.errors import StoreUnavailable
from oncekey.core.execution import Entry, Execution, Promise
from oncekey.core.ports import Gone, Insert
from oncekey.core.work import AddToken, Advance, Await, Ending, Load, Spawn, Start
from oncekey.durable.embedded.history import History

if TYPE_CHECKING:
    from oncekey.durable.definition import Definition
    from oncekey.durable.embedded.runs import Runs

log = logging.getLogger("oncekey")

_PAUSE_AFTER_FAILURE = 0.2
_LOOK_AGAIN = 0.05
# So many turns of the loop pass a result on from task to task, before a run counts as still.
_TURNS = 20


class Halted(asyncio.CancelledError):
    """Ends the code of a run from within; `Run.halted` says how. Not for `except Exception`; and
    whoever looks after tasks takes one that ends so for cancelled, which it is."""


class Run(History):
    """It is itself the waiter for what it journals."""

    def __init__(self, runs: Runs, execution: Execution, definition: Definition) -> None:
        super().__init__(execution)
        self.runs = runs
        self.asking = runs.asking
        self.loop = runs.loop
        self.definition = definition
        self.waiting: dict[int, asyncio.Future[None]] = {}
        self.main: asyncio.Task[None] | None = None
        self.tasks: set[asyncio.Task[Any]] = set()
        """The tasks its code runs in: the main one, and each that has used the context."""
        self.busy: set[asyncio.Task[Any]] = set()
        """Those of them that do a step at this moment."""
        self.lying = False
        """Whether the store has it as WAITING."""
        self.closed = False
        """Whether nothing it does counts any more."""
        self.halted: Ending | None = None
        self._unsure = False
        """Whether it may have made a promise that it does not know of."""
        self._entries: list[Entry] = []
        self._ending: Ending | None = None
        self._sent: Advance | None = None
        self._scheduled = False
        self._turn = asyncio.Lock()
        self._durables: list[asyncio.Future[None]] = []
        self._stopped: set[asyncio.Task[Any]] = set()
        """Those whose code was told to end."""
        self._rewinding = False
        self._shifting = False
        """Whether the store is being told that it lies down, or gets up."""
        self._settling = False
        self._turns = 0
        """How often others have their turn before it lies down."""

    def take(self, picked: Picked) -> None:
        """What the store has of it: right after it was picked up, or to catch up."""
        self.load(picked)
        self._wake_ripe()

    # -- journaling ----------------------------------------------------------------------

    def record(self, entry: Entry) -> None:
        """A step has ended. It is on its way to the journal when the code goes on."""
        self.journal[entry.seq] = entry
        self._entries.append(entry)
        if self._sent is None and not self._scheduled:
            self._scheduled = True
            self.loop.call_soon(self._flush)

    def finish(self, ending: Ending) -> None:
        self._ending = ending
        self._flush()

    async def durable(self) -> None:
        """Wait until everything that has ended is in the journal."""
        if self._entries or self._sent is not None:
            await self.settle_down()
        if self.must_stop():
            await self.stop()

    async def settle_down(self) -> None:
        """Wait until nothing is on its way to the journal."""
        while (self._entries or self._sent is not None) and not self.closed:
            future = self.loop.create_future()
            self._durables.append(future)
            self._flush()
            await future

    async def begin(self) -> None:
        """Before something that touches the world. A process that is leaving begins nothing."""
        await self.durable()
        if self.runs.closing:
            await self.loop.create_future()
        if self.lying or self._shifting:
            await self._get_up()
        if self.waiting:
            self.runs.torn.add(self)

    async def _get_up(self) -> None:
        """It lay down, or is about to, and has something to do all the same."""
        try:
            async with self._turn:
                if self.lying:
                    self._shifting = True
                    self.runs.gets_up(self)
                    await self._told(Advance(self.id, self.fence, self.asking.clock.now()))
        finally:
            self._shifting = False
            self._go_on()

    def _flush(self) -> None:
        self._scheduled = False
        if self._sent is not None or self.closed or self._turn.locked():
            return
        if not self._entries and self._ending is None:
            return
        entries, self._entries = tuple(self._entries), []
        self._send(
            Advance(self.id, self.fence, self.asking.clock.now(), entries, self._ending, None)
        )

    def _send(self, advance: Advance) -> None:
        self._sent = advance
        self.asking.store.submit(advance, self)

    def resolve(self, answer: Any) -> None:
        """The store has answered to what was sent; called on the loop."""
        sent, self._sent = self._sent, None
        assert sent is not None
        if self.closed:
            return
        if isinstance(answer, Advanced):
            self._advanced(sent, answer)
        elif isinstance(answer, StoreUnavailable):
            self._entries[:0] = sent.entries
            self.loop.call_later(_PAUSE_AFTER_FAILURE, self._go_on)
        else:
            if not isinstance(answer, Lost):
                log.error("%s was given up: %s", self.execution.public_id, answer)
            self.close()

    def _advanced(self, sent: Advance, answer: Advanced) -> None:
        if sent.ending is not None:
            self.closed = True
            self.runs.ended(self, sent.ending, sent.now, answer.ended)
            self._stop_tasks()
            self._release_durables()
            return
        if sent.waits is not None:
            if answer.woken:
                self.runs.background(self.catch_up())
            elif sent.fence == self.fence:
                self.runs.lies_down(self)
        self._go_on()

    def _go_on(self) -> None:
        """Something was carried out: others have their turn, or there is nothing but to wait."""
        self._flush()
        self._release_durables()
        self._lie_down_soon()

    def _release_durables(self) -> None:
        waiting, self._durables = self._durables, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    # -- waiting -------------------------------------------------------------------------

    async def promise(
        self,
        promise: Promise,
        *,
        insert: Insert | None = None,
        token: bytes | None = None,
        start: Start | None = None,
        waits: bool = True,
    ) -> Awaited | KeyTaken | Gone:
        """Make a promise at its position. Everything that has ended is journaled with it."""
        try:
            async with self._turn:
                await self._quiet()
                self._shifting = waits and await self._is_alone()
                advance = self._taken(self.wakes if self._shifting else None)
                if self.lying:
                    self.runs.gets_up(self)
                before, self._unsure = self._unsure, True
                request = Await(advance, promise, insert, token, start)
                answer: Awaited | KeyTaken | Gone = await self._told(request)
                self._unsure = before
                if isinstance(answer, Awaited):
                    self._awaited(answer, advance)
        finally:
            self._shifting = False
            self._go_on()
        return answer

    def _taken(self, waits: int | None = None) -> Advance:
        """What has ended so far, to be journaled with whatever else is asked for."""
        entries, self._entries = tuple(self._entries), []
        return Advance(self.id, self.fence, self.asking.clock.now(), entries, None, waits)

    def _awaited(self, answer: Awaited, sent: Advance) -> None:
        seq = answer.promise.seq
        assert seq is not None
        if answer.entry is not None:
            self.saw(answer.entry)
        else:
            self.awaits(seq, answer.promise)
            # With another fence it has been picked up again meanwhile.
            if answer.waits and sent.fence == self.fence:
                self.runs.lies_down(self)
            elif sent.waits is not None:
                self.runs.background(self.catch_up())
        due_at = answer.promise.due_at
        if due_at is not None and answer.entry is None:
            self.runs.timers.expect(due_at)

    async def wait(self, seq: int) -> None:
        """Until the promise at `seq` is settled: then it is in the journal, or may be retried."""
        if self.must_stop():
            # It was put out as it lay down: there is nobody who would wake it here.
            await self.stop()
        if self.is_ripe(seq):
            return
        future = self.waiting[seq] = self.loop.create_future()
        self._lie_down_soon()
        try:
            await future
        finally:
            self.waiting.pop(seq, None)
            self._lie_down_soon()
        if self.must_stop():
            await self.stop()

    def _lie_down_soon(self) -> None:
        """Code that goes on in one task may wake another of the run's: it is given time for it."""
        self._turns = _TURNS if len(self.tasks) > 1 else 0
        if not self._settling and self.waiting and not self.lying:
            self._settling = True
            self.loop.call_soon(self._lie_down)

    def _lie_down(self) -> None:
        """When nothing is left to do but wait, say so: then waiting needs no process."""
        if self._turns:
            self._turns -= 1
            self.loop.call_soon(self._lie_down)
            return
        self._settling = False
        if self.waiting and self.busy:
            self.runs.torn.add(self)
        if self.busy or self.lying or self.closed or self._entries or self._sent is not None:
            return
        # What it waited for may be there, and its code only not yet have had its turn.
        still = self.waiting and not any(future.done() for future in self.waiting.values())
        if still and not self._turn.locked():
            self._send(self._taken(self.wakes))

    def settled(self, woken: Woken) -> None:
        """Something it waits for was settled while it was running here."""
        if woken.entry is None:
            self.runs.background(self.catch_up())
            return
        self.saw(woken.entry)
        self._wake_ripe()

    async def catch_up(self) -> None:
        """Read what the store has that the run has not seen."""
        answer = await self.asking.insist(Load(self.id, self.fence))
        if isinstance(answer, Lost):
            self.close()
        elif not self.closed:
            self.take(answer)
            self._lie_down_soon()

    def _wake_ripe(self) -> None:
        for seq, future in list(self.waiting.items()):
            if self.is_ripe(seq) and not future.done():
                future.set_result(None)

    def leaves_promises(self) -> bool:
        """Whether something is pending that nobody will wait for when the run has ended."""
        return self._unsure or self.has_pending()

    async def _is_alone(self) -> bool:
        """Whether this task is all there is of the run: then it does nothing but wait."""
        if len(self.tasks) == 1 and not self.busy:
            # One that was made a moment ago has its first turn now.
            await asyncio.sleep(0)
        return len(self.tasks) == 1 and not self.busy

    # -- children and tokens -------------------------------------------------------------

    async def spawn(self, start: Start, entry: Entry) -> Spawned | Gone:
        try:
            async with self._turn:
                await self._quiet()
                request = Spawn(self._taken(), start, entry)
                answer: Spawned | Gone = await self._told(request)
                if isinstance(answer, Spawned) and answer.is_journaled:
                    self.journal[entry.seq] = answer.entry
        finally:
            self._go_on()
        return answer

    async def add_token(self, seq: int, digest: bytes) -> None:
        await self._told(AddToken(self.id, self.fence, seq, digest))

    # -- the end of it -------------------------------------------------------------------

    def halt(self, ending: Ending) -> Halted:
        """What to raise so that the run ends in another way than by returning."""
        self.halted = self.halted or ending
        if self.main is not None and self.main is not asyncio.current_task():
            self.main.cancel()
        return Halted()

    def close(self) -> None:
        """Leave it as it is in the store: it is somebody else's now, or waits there."""
        if not self.closed:
            self.closed = True
            self.runs.forget(self)
            self._stop_tasks()
            self._release_durables()

    def _stop_tasks(self) -> None:
        """The code is taken from where it stands; its `finally:` blocks run."""
        for task in self.tasks:
            if not task.done() and task is not asyncio.current_task(self.loop):
                task.cancel()

    async def rewind(self) -> None:
        """Before its code begins anew: the steps that are being done end and are journaled, and
        whatever else is left of the code is given up."""
        self._rewinding = True
        while left := self.tasks - {self.main}:
            for task in left - self.busy:
                task.cancel()
            await asyncio.wait(left, timeout=_LOOK_AGAIN, return_when=asyncio.FIRST_COMPLETED)
        self._rewinding = False

    def must_stop(self) -> bool:
        return self.closed or self.halted is not None or self._rewinding

    async def stop(self) -> NoReturn:
        """End the code of a task where it stands. One that goes on all the same, whatever is raised
        in it, is held: it must neither do anything nor turn in circles."""
        task = asyncio.current_task()
        assert task is not None
        if task not in self._stopped:
            self._stopped.add(task)
            raise Halted
        if not self.closed and self.halted is not None:
            self.finish(self.halted)
        self.tasks.discard(task)
        await self.loop.create_future()
        raise Halted

    async def _quiet(self) -> None:
        while self._sent is not None and not self.closed:
            future = self.loop.create_future()
            self._durables.append(future)
            await future
        if self.must_stop():
            await self.stop()

    async def _told(self, request: AddToken | Advance | Await | Spawn) -> Any:
        """The answer, whatever it takes. When nobody waits for it any more, what it was to journal
        is journaled with the next: to do so twice changes nothing."""
        try:
            answer = await self.asking.insist(request)
        except BaseException:
            if isinstance(request, Await | Spawn):
                self._entries[:0] = request.advance.entries
            raise
        if isinstance(answer, Lost):
            self.close()
        if self.closed:
            await self.stop()
        return answer
