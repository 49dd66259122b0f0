"""Replays: code that no longer fits its journal stops where it differs, until it fits again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from oncekey import App, Context
from oncekey.core.execution import Status
from oncekey.durable.failure import decode_failure
from tests.conformance.durable.conftest import Workshop, promises_of, until, waiting

pytestmark = pytest.mark.anyio

Code = Callable[[Context], Awaitable[Any]]


class Deployed:
    """One workflow whose code is replaced between two lives of its process."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self.done: list[str] = []

    def step(self, name: str, *_: Any) -> str:
        self.done.append(name)
        return name

    def app(self, code: Code) -> App:
        app = self._workshop.app()

        @app.workflow(name="flow")
        async def flow(ctx: Context) -> Any:
            return await code(ctx)

        return app

    async def started(self, code: Code) -> str:
        """Its id, once nothing is left for it to do but to wait."""
        app = self.app(code)
        async with self._workshop.open(app):
            handle = await app.start("flow")
            await waiting(app, handle.id)
        return handle.id

    async def paused(self, code: Code, number: str, *resolutions: str) -> str:
        """What it says when it is woken, and does not fit."""
        app = self.app(code)
        async with self._workshop.open(app):
            for each in resolutions:
                await app.resolve(f"id:{number}:{each}")
            found = await app.engine.wait("default", number, 60)
            assert found.status is Status.PAUSED
            failure = decode_failure(found.result)
            assert failure.code == "non-deterministic"
            return failure.message

    async def result(self, code: Code, number: str, *resolutions: str, resume: bool = False) -> Any:
        app = self.app(code)
        async with self._workshop.open(app):
            if resume:
                await app.resume(number, request_key="mended")
            for each in resolutions:
                await app.resolve(f"id:{number}:{each}")
            return await (await app.handle(number)).result(timeout=60)


@pytest.fixture
def deployed(workshop: Workshop) -> Deployed:
    return Deployed(workshop)


# -- code that was changed ---------------------------------------------------------------------


def changes(deployed: Deployed) -> dict[str, tuple[Code, str]]:
    """Changes to `a, b, promise go, c`, and what is said of each."""
    step = deployed.step

    async def renamed(ctx: Context) -> None:
        await ctx.run("A", step, "a")

    async def another_kind(ctx: Context) -> None:
        await ctx.sleep(1)

    async def another_order(ctx: Context) -> None:
        await ctx.run("b", step, "b")

    async def other_arguments(ctx: Context) -> None:
        await ctx.run("a", step, "x")

    async def one_removed(ctx: Context) -> None:
        await ctx.run("a", step, "a")
        await ctx.promise("go")

    async def one_added(ctx: Context) -> None:
        await ctx.run("a", step, "a")
        await ctx.run("new", step, "new")

    async def shortened(ctx: Context) -> None:
        await ctx.run("a", step, "a")

    async def another_promise(ctx: Context) -> None:
        await ctx.run("a", step, "a")
        await ctx.run("b", step, "b")
        await ctx.promise("stop")

    async def another_key(ctx: Context) -> None:
        await ctx.run("a", step, "a")
        await ctx.run("b", step, "b")
        await ctx.promise("go", key="other")

    return {
        "renamed": (renamed, "at step 1 the journal has run 'a', the code came to run 'A'"),
        "another kind": (another_kind, "at step 1 the journal has run 'a', the code came to sleep"),
        "another order": (
            another_order,
            "at step 1 the journal has run 'a', the code came to run 'b'",
        ),
        "other arguments": (
            other_arguments,
            "at step 1 the journal has run 'a', the code came to run 'a' with other arguments",
        ),
        "one removed": (
            one_removed,
            "at step 2 the journal has run 'b', the code came to promise 'go'",
        ),
        "one added": (one_added, "at step 2 the journal has run 'b', the code came to run 'new'"),
        "shortened": (
            shortened,
            "at step 3 the journal has promise 'go', the code came to the end",
        ),
        "another promise": (
            another_promise,
            "at step 3 the journal has promise 'go', the code came to promise 'stop'",
        ),
        "another key": (
            another_key,
            "at step 3 the journal has promise 'go', the code came to promise 'go' with other argu",
        ),
    }


CHANGES = [
    "renamed", "another kind", "another order", "other arguments", "one removed", "one added",
    "shortened", "another promise", "another key",
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
async def test_code_that_does_not_fit_is_paused_and_goes_on_when_it_is_put_right(
    deployed: Deployed, change: str
) -> None:
    async def original(ctx: Context) -> str:
        await ctx.run("a", deployed.step, "a")
        await ctx.run("b", deployed.step, "b")
        await ctx.promise("go")
        return await ctx.run("c", deployed.step, "c")

    number = await deployed.started(original)
    changed, told = changes(deployed)[change]
    said = await deployed.paused(changed, number, "go")
    assert f"the code of flow does not fit the journal of {number}" in said
    assert told in said
    assert deployed.done == ["a", "b"]
    assert await deployed.result(original, number, resume=True) == "c"
    assert deployed.done == ["a", "b", "c"]


async def test_what_is_waited_for_is_part_of_the_journal(deployed: Deployed) -> None:
    """Also before it is settled: other code must not take its place, nor what comes for it."""

    async def original(ctx: Context) -> Any:
        first = asyncio.ensure_future(ctx.promise("first"))
        second = asyncio.ensure_future(ctx.promise("second"))
        return [await second, await first]

    async def changed(ctx: Context) -> Any:
        first = asyncio.ensure_future(ctx.run("instead", deployed.step, "instead"))
        second = asyncio.ensure_future(ctx.promise("second"))
        return [await second, await first]

    number = await deployed.started(original)
    said = await deployed.paused(changed, number, "second")
    assert "at step 1 of branch 1 the journal has promise 'first'" in said
    assert "the code came to run 'instead'" in said
    assert deployed.done == []
    assert await deployed.result(original, number, "first", resume=True) == [None, None]


async def test_code_may_grow_where_the_journal_ends(deployed: Deployed) -> None:
    async def original(ctx: Context) -> None:
        await ctx.run("a", deployed.step, "a")
        await ctx.promise("go")

    async def longer(ctx: Context) -> str:
        await original(ctx)
        return await ctx.run("b", deployed.step, "b")

    number = await deployed.started(original)
    assert await deployed.result(longer, number, "go") == "b"
    assert deployed.done == ["a", "b"]


async def test_a_step_that_fails_may_be_replaced_by_something_else(workshop: Workshop) -> None:
    """What has not ended is in no journal: a step that was tried in vain is no promise to keep."""
    app = workshop.app()
    tries: list[int] = []

    def fail() -> None:
        tries.append(1)
        raise OSError("not today")

    @app.workflow(name="flow")
    async def broken(ctx: Context) -> None:
        await ctx.run("fail", fail)

    mended = workshop.app()

    @mended.workflow(name="flow")
    async def asks(ctx: Context) -> Any:
        return await ctx.promise("answer")

    async with workshop.open(app):
        handle = await app.start(broken)
        await until(lambda: _came(tries))
        await waiting(app, handle.id)
    async with workshop.open(mended):

        async def is_asked() -> bool:
            return any(each.name == "answer" for each in await promises_of(mended, handle.id))

        await until(is_asked)
        await mended.resolve(f"id:{handle.id}:answer", 42)
        assert await (await mended.handle(handle.id)).result(timeout=60) == 42


async def _came(tries: list[int]) -> bool:
    return bool(tries)
