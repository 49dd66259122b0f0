"""Control operations: every row of the table, and what each does to the workflow."""

import asyncio

import pytest

from oncekey import (
    App,
    Context,
    ControlRefused,
    NotFound,
    PromiseOver,
    RequestKeyInvalid,
    Retry,
    TerminalError,
)
from oncekey.core.execution import Status
from tests.conformance.durable.conftest import Workshop, status_of, waiting

pytestmark = pytest.mark.anyio


class Shop:
    """A workflow of three steps with a wait in the middle."""

    def __init__(self, workshop: Workshop) -> None:
        self.app: App = workshop.app(retry=Retry(attempts=1))
        self.done: list[str] = []

        @self.app.workflow
        async def order(ctx: Context, name: str) -> list[str]:
            first = await ctx.run("first", self.step, f"{name}1")
            told = await ctx.promise("told", key=f"k:{name}")
            last = await ctx.run("last", self.step, f"{name}2")
            return [first, told, last]

        self.order = order

    async def step(self, name: str) -> str:
        self.done.append(name)
        return f"{name} {len(self.done)}"


async def test_cancel_ends_it_and_tells_everybody(workshop: Workshop) -> None:
    shop = Shop(workshop)
    app = shop.app
    async with workshop.open(app):
        handle = await app.start(shop.order, "a", key="o")
        await waiting(app, handle.id)
        result = asyncio.ensure_future(handle.result(timeout=20))
        await asyncio.sleep(0)
        answer = await app.cancel(handle.id, request_key="c1")
        assert (answer.execution_id, answer.status) == (handle.id, "cancelled")
        assert not answer.replayed
        with pytest.raises(TerminalError, match="cancelled"):
            await result
        with pytest.raises(PromiseOver) as raised:
            await app.resolve("key:k:a", 1)
        assert raised.value.state == "cancelled"
        assert await status_of(app, handle.id) is Status.CANCELLED
        again = await app.start(shop.order, "a", key="o")
        assert (again.id, again.created) == (handle.id, False)
    assert shop.done == ["a1"]


async def test_a_cancelled_child_fails_its_parent(workshop: Workshop) -> None:
    app = workshop.app()

    @app.workflow
    async def child(ctx: Context) -> None:
        await ctx.promise("never")

    @app.workflow
    async def parent(ctx: Context) -> None:
        await ctx.call(child, key="child")

    async with workshop.open(app):
        handle = await app.start(parent)
        await waiting(app, handle.id)
        existing = await app.start(child, key="child")
        assert not existing.created
        await waiting(app, existing.id)
        await app.cancel(existing.id, request_key="c")
        with pytest.raises(TerminalError, match="child failed: it was cancelled"):
            await handle.result(timeout=20)


async def test_the_same_key_again_is_replayed(workshop: Workshop) -> None:
    shop = Shop(workshop)
    async with workshop.open(shop.app) as app:
        handle = await app.start(shop.order, "a")
        await waiting(app, handle.id)
        first = await app.fork(handle.id, 2, request_key=" f1 ")
        again = await app.fork(handle.id, 2, request_key="f1")
        assert again == first._replace(replayed=True)
        assert first.execution_id != handle.id
        answers = await asyncio.gather(
            *(app.cancel(handle.id, request_key="c1") for _ in range(20))
        )
        assert [answer.replayed for answer in answers].count(False) == 1


async def test_a_key_used_for_something_else_is_refused(workshop: Workshop) -> None:
    shop = Shop(workshop)
    async with workshop.open(shop.app) as app:
        one, two = [await app.start(shop.order, name) for name in ("a", "b")]
        for handle in (one, two):
            await waiting(app, handle.id)
        await app.fork(one.id, 1, request_key="k")
        for other in (
            app.fork(one.id, 2, request_key="k"),
            app.fork(two.id, 1, request_key="k"),
            app.cancel(one.id, request_key="k"),
        ):
            with pytest.raises(ControlRefused, match="another action, workflow or parameters"):
                await other
        assert await status_of(app, one.id) is Status.WAITING


async def test_what_failed_before_is_told(workshop: Workshop) -> None:
    shop = Shop(workshop)
    async with workshop.open(shop.app) as app:
        handle = await app.start(shop.order, "a")
        await waiting(app, handle.id)
        with pytest.raises(ControlRefused, match="only what is paused can be resumed"):
            await app.resume(handle.id, request_key="r")
        with pytest.raises(ControlRefused, match="used before, and the resume failed"):
            await app.resume(handle.id, request_key="r")
        with pytest.raises(ControlRefused, match="from_step must be 1 to 2"):
            await app.fork(handle.id, 9, request_key="f")
        await app.resolve("key:k:a", "told")
        await handle.result(timeout=20)
        with pytest.raises(ControlRefused, match="it is succeeded already"):
            await app.cancel(handle.id, request_key="c")


@pytest.mark.parametrize("key", ["", "   ", "x" * 201, "é" * 101])
async def test_a_bad_request_key_is_refused(workshop: Workshop, key: str) -> None:
    shop = Shop(workshop)
    async with workshop.open(shop.app) as app:
        handle = await app.start(shop.order, "a")
        with pytest.raises(RequestKeyInvalid, match="at most 200 bytes"):
            await app.cancel(handle.id, request_key=key)


async def test_a_fork_does_again_what_comes_after_its_step(workshop: Workshop) -> None:
    shop = Shop(workshop)
    async with workshop.open(shop.app) as app:
        handle = await app.start(shop.order, "a")
        await waiting(app, handle.id)
        await app.resolve("key:k:a", "t1")
        assert await handle.result(timeout=20) == ["a1 1", "t1", "a2 2"]
        last = await app.fork(handle.id, 3, request_key="f3")
        assert await (await app.handle(last.execution_id)).result(timeout=20) == [
            "a1 1",
            "t1",
            "a2 3",
        ]
        middle = await app.fork(handle.id, 2, request_key="f2")
        await waiting(app, middle.execution_id)
        # The key of a promise that its source is done with is the fork's.
        await app.resolve("key:k:a", "t2")
        assert (await (await app.handle(middle.execution_id)).result(timeout=20))[:2] == [
            "a1 1",
            "t2",
        ]
        forked = await app.engine.execution("default", middle.execution_id)
        source = await app.engine.execution("default", handle.id)
        assert (forked.forked_from, forked.forked_at) == (source.id, 2)
        assert source.result == b'["a1 1","t1","a2 2"]'


async def test_what_is_not_there_cannot_be_controlled(workshop: Workshop) -> None:
    shop = Shop(workshop)
    async with workshop.open(shop.app) as app:
        for number in ("wf_0000000000000001", "nonsense", "tk_0"):
            with pytest.raises(NotFound):
                await app.cancel(number, request_key="c")
        handle = await app.start(shop.order, "a")
        await waiting(app, handle.id)
        # Nothing was kept under the key of what was refused.
        assert not (await app.cancel(handle.id, request_key="c")).replayed


async def test_cancel_stops_code_that_runs_here(workshop: Workshop) -> None:
    app = workshop.app()
    ended: list[str] = []
    begun = asyncio.Event()

    @app.workflow
    async def busy(ctx: Context) -> None:
        async def forever() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("stopped")

        await ctx.run("forever", forever)

    async with workshop.open(app):
        handle = await app.start(busy)
        await begun.wait()
        await app.cancel(handle.id, request_key="c")
        with pytest.raises(TerminalError):
            await handle.result(timeout=20)
        for _ in range(3):
            await asyncio.sleep(0)
        assert ended == ["stopped"]


async def test_a_fork_of_steps_that_were_given_the_workflows_id(workshop: Workshop) -> None:
    app = workshop.app()

    @app.workflow
    async def named(ctx: Context) -> list[str]:
        return [await ctx.run(name, str, ctx.id) for name in ("one", "two")]

    async with workshop.open(app):
        handle = await app.start(named)
        assert await handle.result(timeout=20) == [handle.id, handle.id]
        fork = await app.fork(handle.id, 2, request_key="f")
        told = await (await app.handle(fork.execution_id)).result(timeout=20)
        assert told == [handle.id, fork.execution_id]
