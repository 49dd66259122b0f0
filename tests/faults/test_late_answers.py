"""An answer of the store that comes late is about what has changed since: nothing is forgotten."""

import asyncio
from typing import Any

import pytest

import oncekey
from oncekey import App, Context, Ledger, Retry
from oncekey.core.ports import Request, Store, Waiter
from oncekey.core.work import Await, Load
from oncekey.stores.values import JsonCodec

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


class Held:
    """Whoever waits, kept from its answer until it is let go."""

    def __init__(self, waiter: Waiter) -> None:
        self._waiter = waiter
        self.loop = waiter.loop
        self.come = asyncio.Event()
        self._answer: Any = None

    def resolve(self, answer: Any) -> None:
        self._answer = answer
        self.come.set()

    def let_go(self) -> None:
        self._waiter.resolve(self._answer)


class LateStore:
    """Slow to say that it has carried an `Await` out, and slow to carry a `Load` out."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.holds = self.delays = False
        self.held: asyncio.Queue[Held] = asyncio.Queue()
        self.delayed: list[tuple[Request, Waiter]] = []

    def submit(self, request: Any, waiter: Waiter) -> None:
        if self.holds and isinstance(request, Await):
            waiter = Held(waiter)
            self.held.put_nowait(waiter)
        if self.delays and isinstance(request, Load):
            self.delayed.append((request, waiter))
        else:
            self._store.submit(request, waiter)

    def go_on(self) -> None:
        self.holds = self.delays = False
        for request, waiter in self.delayed:
            self._store.submit(request, waiter)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def test_a_retry_that_is_due_before_it_is_known_to_be_made() -> None:
    late: Any = LateStore(oncekey.open("memory://").store)
    ledger = Ledger(late, codec=JsonCodec())
    app, tries = App(), []

    def fails_once() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("not yet")
        return "done"

    @app.workflow
    async def flaky(ctx: Context) -> str:
        return await ctx.run("step", fails_once, retry=Retry(attempts=3, initial=0.001))

    async with app.open(ledger):
        late.holds = late.delays = True
        started = await app.start(flaky)
        answer = await late.held.get()
        await answer.come.wait()
        # The wait is over, and the execution is picked up again, before that answer is heard.
        engine: Any = app.engine
        run = engine._runs.find(int(started.id.removeprefix("wf_"), 16))
        before = run.fence
        while run.fence == before:
            await engine._runs.timers.run_once()
            await asyncio.sleep(0)
        answer.let_go()
        # Everybody has had a turn before somebody looks what there is.
        for _ in range(100):
            await asyncio.sleep(0)
        late.go_on()
        assert await started.result(20) == "done"
    assert len(tries) == 2
    ledger.close()
