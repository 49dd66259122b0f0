"""Two apps on one ledger: each runs what it knows, and leaves the other's work alone."""

import asyncio

import pytest

import oncekey
from oncekey import App, Context, NotFound
from tests.conformance.durable.conftest import Workshop

pytestmark = pytest.mark.anyio


async def test_an_app_does_not_take_its_neighbours_work_for_lost(workshop: Workshop) -> None:
    done: list[str] = []
    go, begun = asyncio.Event(), asyncio.Event()

    async def slow() -> str:
        done.append("slow")
        begun.set()
        await go.wait()
        return "done"

    one, two = App(), App()

    @one.workflow
    async def busy(ctx: Context) -> str:
        return await ctx.run("slow", slow)

    @two.workflow
    async def idle(ctx: Context) -> None:
        return None

    ledger = oncekey.open(workshop.url)
    async with one.open(ledger), two.open(ledger):
        handle = await one.start(busy)
        await begun.wait()
        for app in (one, two):
            for _ in range(3):
                await app.engine._runs.find_lost()  # type: ignore[attr-defined]
        await (await two.start(idle)).result(timeout=60)
        go.set()
        assert await handle.result(timeout=60) == "done"
    assert done == ["slow"]
    ledger.close()


async def test_whoever_waits_for_what_is_not_there_leaves_nothing_behind(
    workshop: Workshop,
) -> None:
    app = workshop.app()
    async with workshop.open(app):
        for number in range(20):
            with pytest.raises(NotFound):
                await app.engine.wait("default", f"wf_{number:016x}", 1)
        assert app.engine._watching._watchers == {}  # type: ignore[attr-defined]
