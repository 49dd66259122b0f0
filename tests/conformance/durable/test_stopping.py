"""Code that is stopped where it stands, and code that stands in the way of that."""

import asyncio
from typing import Any

import pytest

from oncekey import App, Context, Retry
from oncekey.core.execution import Status
from oncekey.durable.failure import decode_failure
from tests.conformance.durable.conftest import Workshop, status_of, until, waiting

pytestmark = pytest.mark.anyio

QUICK = Retry(attempts=5, initial=0.001, longest=0.002)


async def end_of(app: App, number: str) -> Any:
    found = await app.engine.wait("default", number, 60)
    assert found.status is Status.PAUSED or found.status.is_over
    return found


class Changed:
    """A journal of two steps and a wait, and code that no longer fits the second step."""

    def __init__(self, workshop: Workshop) -> None:
        self.workshop = workshop
        self.done: list[str] = []

    async def step(self, name: str) -> str:
        self.done.append(name)
        return name

    async def started(self) -> str:
        app = self.workshop.app()

        @app.workflow(name="flow")
        async def flow(ctx: Context) -> None:
            await ctx.run("a", self.step, "a")
            await ctx.run("b", self.step, "b")
            await ctx.promise("go")

        async with self.workshop.open(app):
            handle = await app.start(flow)
            await waiting(app, handle.id)
        return handle.id

    async def paused(self, app: App, number: str) -> None:
        """It is paused, and nobody is kept from anything else meanwhile."""
        async with self.workshop.open(app):
            await app.resolve(f"id:{number}:go")
            found = await end_of(app, number)
            assert found.status is Status.PAUSED
            assert "at step 2 the journal has run 'b'" in decode_failure(found.result).message
        assert self.done == ["a", "b"]


async def test_code_that_catches_every_exception_is_paused_all_the_same(workshop: Workshop) -> None:
    changed = Changed(workshop)
    number, app = await changed.started(), workshop.app()

    @app.workflow(name="flow")
    async def flow(ctx: Context) -> str:
        await ctx.run("a", changed.step, "a")
        try:
            await ctx.run("B", changed.step, "B")
        except Exception:  # noqa: BLE001 - this is what the test is about
            changed.done.append("caught")
        return "done"

    await changed.paused(app, number)


async def test_code_that_catches_everything_and_tries_for_ever_is_paused(
    workshop: Workshop,
) -> None:
    changed = Changed(workshop)
    number, app = await changed.started(), workshop.app()
    rounds: list[int] = []
    is_over: list[bool] = []

    @app.workflow(name="flow")
    async def flow(ctx: Context) -> None:
        await ctx.run("a", changed.step, "a")
        while not is_over:
            rounds.append(1)
            try:
                await ctx.run("B", changed.step, "B")
            except GeneratorExit:
                # Nobody has it any more, which may be seen before the end of the test.
                raise
            except:  # noqa: E722 - this is what the test is about
                continue

    await changed.paused(app, number)
    is_over.append(True)
    assert len(rounds) < 10


@pytest.mark.parametrize("way", ["gather", "group", "alone"])
async def test_a_branch_that_does_not_fit_pauses_the_whole(workshop: Workshop, way: str) -> None:
    changed = Changed(workshop)
    app, other = workshop.app(), workshop.app()

    async def both(ctx: Context, *names: str) -> None:
        branches = [ctx.run(name, changed.step, name) for name in names]
        if way == "gather":
            await asyncio.gather(*branches)
        elif way == "group":
            async with asyncio.TaskGroup() as group:
                for each in branches:
                    group.create_task(each)
        else:
            tasks = [asyncio.ensure_future(each) for each in branches]
            await ctx.promise("never" if "C" in names else "go")
            await asyncio.wait(tasks)

    @app.workflow(name="flow")
    async def flow(ctx: Context) -> None:
        await both(ctx, "a", "b")
        if way != "alone":
            await ctx.promise("go")

    @other.workflow(name="flow")
    async def changed_flow(ctx: Context) -> None:
        await both(ctx, "a", "C")

    async with workshop.open(app):
        handle = await app.start(flow)
        await waiting(app, handle.id)
    async with workshop.open(other):
        await other.resolve(f"id:{handle.id}:go")
        found = await end_of(other, handle.id)
    assert found.status is Status.PAUSED
    told = decode_failure(found.result).message
    assert "does not fit the journal" in told
    assert sorted(changed.done) == ["a", "b"]


async def test_what_is_done_at_the_end_of_a_block_is_done_once(workshop: Workshop) -> None:
    """The code is taken from where it waits, and its `finally` runs: but nothing counts there."""
    app = workshop.app()
    done: list[str] = []
    reached: list[str] = []

    async def step(name: str) -> str:
        done.append(name)
        return name

    @app.workflow
    async def careful(ctx: Context) -> str:
        try:
            return await ctx.promise("go", type=str)
        finally:
            reached.append("finally")
            await ctx.run("clean", step, "clean")
            await ctx.promise("cleaned")

    async with workshop.open(app):
        handle = await app.start(careful)
        await waiting(app, handle.id)
    async with workshop.open(app):
        assert done == []
        await app.resolve(f"id:{handle.id}:go", "went")

        async def is_clean() -> bool:
            return done == ["clean"]

        await until(is_clean)
        await waiting(app, handle.id)
        await app.resolve(f"id:{handle.id}:cleaned")
        assert await (await app.handle(handle.id)).result(timeout=60) == "went"
    assert done == ["clean"]
    assert len(reached) >= 2


async def test_code_that_is_put_out_does_nothing_more(workshop: Workshop) -> None:
    app = workshop.app()
    done: list[str] = []
    stood: list[str] = []

    async def step(name: str) -> None:
        done.append(name)

    @app.workflow
    async def stubborn(ctx: Context) -> str:
        try:
            await ctx.promise("go")
        except asyncio.CancelledError:
            stood.append("cancelled")
        await ctx.run("after", step, "after")
        return "done"

    async with workshop.open(app):
        handle = await app.start(stubborn)
        await waiting(app, handle.id)
    assert done == []
    async with workshop.open(app):
        assert await status_of(app, handle.id) is Status.WAITING
        await app.resolve(f"id:{handle.id}:go")
        assert await (await app.handle(handle.id)).result(timeout=60) == "done"
    assert done == ["after"]
    assert stood
