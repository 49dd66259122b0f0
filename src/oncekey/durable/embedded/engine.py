"""The embedded engine: durable work in the database of the ledger, in the same transactions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from oncekey.core.answers import Controlled, Existing, Started
from oncekey.core.errors import (
    InvalidInput,
    KeyReused,
    LedgerClosed,
    NameUnknown,
    NotFound,
    TerminalError,
)
from oncekey.core.execution import (
    Entry,
    Execution,
    Promise,
    PromiseState,
    Sort,
    Status,
    execution_number_of,
)
from oncekey.core.ledger import Ledger
from oncekey.core.looking import Looked
from oncekey.core.ports import Gone
from oncekey.core.work import (
    Action,
    Control,
    Event,
    FindExecution,
    Know,
    Known,
    ListEvents,
    ListExecutions,
    ListPromises,
    Lives,
    ReadJournal,
    Start,
)
from oncekey.durable.address import Address
from oncekey.durable.definition import Definition
from oncekey.durable.embedded.asking import Asking
from oncekey.durable.embedded.controlling import check_request_key, controlled_by, unknown
from oncekey.durable.embedded.events import EventMatching
from oncekey.durable.embedded.promises import Promises
from oncekey.durable.embedded.publishing import Publishing
from oncekey.durable.embedded.runs import Runs
from oncekey.durable.embedded.timers import Timers
from oncekey.durable.embedded.watching import LOOK_AGAIN, Watching
from oncekey.durable.engine import (
    PARK_TTL,
    ControlAnswer,
    Engine,
    OnFailed,
    PromiseAnswer,
    PublishAnswer,
    SettleAnswer,
    StartAnswer,
)
from oncekey.durable.failure import encode_failure, failure_of

_GRACE = 10.0


class EmbeddedEngine(Engine):
    """`definitions` is what this process can run; without any it only starts, settles and looks.

    One that does not `watch` does nothing by itself: what is due is left to other processes.
    """

    def __init__(
        self,
        ledger: Ledger,
        definitions: Iterable[Definition] = (),
        *,
        concurrency: int = 1000,
        resident: int = 1000,
        grace: float = _GRACE,
        watch: bool = True,
    ) -> None:
        self._ledger = ledger
        self._watches = watch
        self._definitions = {each.place: each for each in definitions}
        self._limits = {"concurrency": concurrency, "resident": resident}
        self._grace = grace
        self._known: set[tuple[Sort, str]] = set(self._definitions)
        self._runs: Runs | None = None

    async def open(self) -> None:
        asking = Asking(self._ledger)
        watching = Watching(self._ledger.store)
        runs = self._new_runs(asking, watching)
        runs.events = EventMatching(asking, runs)
        self._asking, self._watching = asking, watching
        self._promises = Promises(asking, watching, runs)
        self._publishing = Publishing(asking, runs.events)
        if self._definitions:
            await asking.ask(Know(tuple(self._definitions), asking.clock.now()))
        self._runs = runs
        if self._watches:
            watching.open(runs.hear)
            runs.timers.open()

    def _new_runs(self, asking: Asking, watching: Watching) -> Runs:
        runs = Runs(asking, watching, self._definitions, **self._limits)
        runs.timers = Timers(runs)
        return runs

    async def close(self) -> None:
        runs, self._runs = self._runs, None
        if runs is not None:
            await runs.timers.close()
            await runs.close(self._grace)
            self._watching.close()

    # -- executions ----------------------------------------------------------------------

    async def start(
        self,
        tenant: str,
        sort: Sort,
        name: str,
        input: bytes,  # noqa: A002
        *,
        key: str | None = None,
        on_failed: OnFailed = "keep",
    ) -> StartAnswer:
        runs, place = self._open_runs(), (sort, name)
        await self._check_name(place)
        runs.starting.check(place, input)
        start = runs.starting.start(tenant, place, input, key, runs, frees_key=on_failed == "free")
        try:
            while isinstance(answer := await self._asking.ask(start, self._adopt), Gone):
                start = runs.starting.renumbered(start)
        except Exception:
            runs.release(start)
            raise
        if isinstance(answer, Existing):
            runs.release(start)
            return StartAnswer(_same(answer, start, key), created=False)
        runs.spawned(start)
        return StartAnswer(start.execution, created=True)

    async def execution(self, tenant: str | None, id: str) -> Execution:  # noqa: A002
        number = _number_of(id)
        self._open_runs()
        found: Execution | None = await self._asking.ask(FindExecution(tenant, number))
        if found is None or found.public_id != id:
            raise unknown(id)
        return found

    async def wait(self, tenant: str, id: str, timeout: float) -> Execution:  # noqa: A002
        runs, number = self._open_runs(), _number_of(id)
        deadline = runs.loop.time() + timeout
        run = runs.find(number)
        # One that lies may have been ended by another process.
        is_here = run is not None and not run.lying and run.execution.tenant == tenant
        while True:
            future = self._watching.enter(number)
            try:
                found = None if is_here else await self.execution(tenant, id)
            except BaseException:
                self._watching.leave(number, future)
                raise
            left = deadline - runs.loop.time()
            if found is not None and (_is_done(found) or left <= 0):
                return found
            told = await self._watching.wait(number, future, max(0.0, min(left, LOOK_AGAIN)))
            if isinstance(told, Execution) and told.tenant == tenant:
                return told
            is_here = False

    async def journal(self, tenant: str, id: str) -> list[Entry]:  # noqa: A002
        found = await self.execution(tenant, id)
        entries: list[Entry] = await self._asking.ask(ReadJournal(found.id))
        return entries

    async def executions(self, query: ListExecutions) -> Looked[Execution]:
        self._open_runs()
        if query.name is not None and not query.name.isprintable():
            # Nothing has such a name, and not every store can look for it.
            return Looked()
        found: Looked[Execution] = await self._ledger.aread(query)
        return found

    async def is_held(self, execution: Execution) -> bool | None:
        self._open_runs()
        if execution.status is not Status.RUNNING:
            return None
        alive: bool = await self._asking.ask(Lives(execution.owner))
        return alive

    async def control(
        self,
        tenant: str,
        action: Action,
        id: str,  # noqa: A002
        request_key: str,
        *,
        from_step: int | None = None,
    ) -> ControlAnswer:
        runs = self._open_runs()
        if (action == "fork") != (from_step is not None):
            raise InvalidInput("from_step goes with fork, and only with it")
        asked = Control(
            tenant,
            check_request_key(request_key),
            action,
            _number_of(id),
            self._asking.clock.now(),
            parameters=json.dumps({"from_step": from_step} if from_step is not None else {}),
            from_step=from_step or 0,
            fork=self._asking.draw(),
            failure=_CANCELLED,
        )
        while isinstance(answer := await self._asking.ask(asked), Gone):
            asked = asked._replace(fork=self._asking.draw())
        controlled = controlled_by(answer, asked, id)
        if answer.verdict == "done":
            self._follow(runs, asked, answer)
        return controlled

    def _follow(self, runs: Runs, asked: Control, answer: Controlled) -> None:
        """What a control operation means for the runs of this process, and for others'."""
        if asked.action == "cancel":
            runs.cancelled(asked.execution)
            if answer.execution is not None:
                self._watching.ended(answer.execution)
            for woken in answer.ended:
                runs.woken(woken)
        else:
            runs.pick_up()
        self._watching.ring()

    # -- promises and events -------------------------------------------------------------

    async def create_promise(
        self,
        tenant: str,
        name: str,
        *,
        key: str | None = None,
        key_ttl: float | None = None,
        timeout: float | None = None,
        token: bool = False,
    ) -> PromiseAnswer:
        self._open_runs()
        return await self._promises.create(
            tenant, name, key=key, key_ttl=key_ttl, timeout=timeout, token=token
        )

    async def promise(self, tenant: str, address: Address) -> Promise:
        self._open_runs()
        return await self._promises.find(tenant, address)

    async def wait_promise(self, tenant: str, address: Address, timeout: float) -> Promise:
        self._open_runs()
        return await self._promises.wait(tenant, address, timeout)

    async def promises(self, query: ListPromises) -> Looked[Promise]:
        self._open_runs()
        if query.tenant is not None and query.key is not None:
            return Looked(await self._promises.keyed(query))
        found: Looked[Promise] = await self._ledger.aread(query)
        return found

    async def settle(
        self,
        tenant: str,
        address: Address,
        state: Literal[PromiseState.RESOLVED, PromiseState.REJECTED],
        body: bytes,
        *,
        request_key: str | None = None,
        park: bool = False,
        park_ttl: float = PARK_TTL,
    ) -> SettleAnswer:
        self._open_runs()
        ttl = park_ttl if park else None
        return await self._promises.settle(
            tenant, address, state, body, request_key=request_key, park_ttl=ttl
        )

    async def publish(
        self,
        tenant: str,
        key: str,
        data: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> PublishAnswer:
        self._open_runs()
        return await self._publishing.publish(tenant, key, data, headers or {}, idempotency_key)

    async def events(
        self,
        tenant: str | None,
        key: str | None = None,
        limit: int = 50,
        *,
        before: int | None = None,
        look: int | None = None,
    ) -> Looked[Event]:
        self._open_runs()
        found: Looked[Event] = await self._ledger.aread(
            ListEvents(tenant, key, limit, before, look)
        )
        return found

    # -- within --------------------------------------------------------------------------

    def _open_runs(self) -> Runs:
        if self._runs is None:
            raise LedgerClosed("the engine is not open")
        return self._runs

    async def _check_name(self, place: tuple[Sort, str]) -> None:
        """Raises for a name nobody runs."""
        if place not in self._known:
            self._known.update(await self._asking.ask(Known()))
        if place not in self._known:
            raise NameUnknown(f"there is no {place[0].name.lower()} {place[1]!r}")

    def _adopt(self, start: Start, answer: Any) -> None:
        """Whoever asked for a start has gone away: if it was made, it runs."""
        if self._runs is not None and isinstance(answer, Started):
            self._runs.spawned(start)
        elif self._runs is not None:
            self._runs.release(start)


_CANCELLED_ERROR = TerminalError("it was cancelled")
_CANCELLED_ERROR.code = "cancelled"
_CANCELLED = encode_failure(failure_of(_CANCELLED_ERROR))


def _same(existing: Existing, start: Start, key: str | None) -> Execution:
    assert start.insert is not None
    if existing.record.fingerprint != start.insert.operation.fingerprint:
        raise KeyReused(f"the key {key!r} was first used with another name or input")
    if existing.execution is None:
        raise NotFound(f"what the key {key!r} started is forgotten")
    return existing.execution


def _number_of(text: str) -> int:
    found = execution_number_of(text)
    if found is None:
        raise unknown(text)
    return found[1]


def _is_done(execution: Execution) -> bool:
    return execution.status.is_over or execution.status is Status.PAUSED
