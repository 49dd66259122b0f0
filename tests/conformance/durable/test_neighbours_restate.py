"""Apps that run the same work on Restate: whoever is there is asked for it."""

import asyncio
from typing import Any

import pytest

import oncekey
from oncekey import App, Context
from oncekey.core.execution import Status
from tests.conformance.durable.conftest import status_of, until, waiting

pytestmark = [pytest.mark.anyio, pytest.mark.restate]


class Town:
    """Apps that know the same workflow; each says when it is in its step, which ends with `go`."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.go = asyncio.Event()

    def app(self, name: str, **options: int) -> App:
        app = App(**options)

        async def step(name: str) -> str:
            self.done.append(name)
            await self.go.wait()
            return name

        @app.workflow
        async def work(ctx: Context) -> str:
            return await ctx.run("step", step, name)

        return app

    async def is_busy(self) -> bool:
        return bool(self.done)


@pytest.fixture
async def town() -> Town:
    return Town()


async def test_an_app_that_closes_leaves_its_work_to_another_of_its_process(
    restate_url: str, town: Town
) -> None:
    one, two = town.app("one"), town.app("two")
    town.go.set()
    ledger = oncekey.open(restate_url)
    async with one.open(ledger):
        async with two.open(ledger):
            assert await (await one.start("work")).result(timeout=60) == "two"
        assert await (await one.start("work")).result(timeout=60) == "one"
    ledger.close()


async def test_an_app_that_closes_leaves_its_work_to_another_process(
    restate_url: str, town: Town
) -> None:
    """Also when the process whose app it was goes on, and could be called."""
    first = oncekey.open(restate_url, lease=1.5, heartbeat=0.3)
    second = oncekey.open(restate_url, lease=1.5, heartbeat=0.3)
    town.go.set()
    one, two = town.app("one"), town.app("two")
    async with one.open(first):
        async with two.open(second):
            assert await (await one.start("work")).result(timeout=60) == "two"
        assert await (await one.start("work")).result(timeout=60) == "one"
    first.close()
    second.close()


async def test_what_is_cancelled_elsewhere_is_stopped_in_its_step(
    restate_url: str, town: Town
) -> None:
    first = oncekey.open(restate_url, lease=1.5, heartbeat=0.3)
    second = oncekey.open(restate_url, lease=1.5, heartbeat=0.3)
    one, idle = town.app("one"), App()
    async with one.open(first), idle.open(second):
        handle = await one.start("work")
        await until(town.is_busy)
        await idle.cancel(handle.id, request_key="r")
        assert await status_of(one, handle.id) is Status.CANCELLED
        runs = one.engine._runs  # type: ignore[attr-defined]

        async def is_stopped() -> bool:
            return runs._runs == {} and runs._count == 0

        await until(is_stopped)
    first.close()
    second.close()


async def test_what_there_is_no_room_for_waits_its_turn(restate_url: str, town: Town) -> None:
    app = town.app("one", concurrency=2)
    async with app.open(restate_url):
        handles = [await app.start("work") for _ in range(6)]

        async def is_full() -> bool:
            runs = app.engine._runs  # type: ignore[attr-defined]
            return len(runs._activations) == 6

        await until(is_full)
        assert len(town.done) <= 2
        town.go.set()
        for handle in handles:
            assert await handle.result(timeout=60) == "one"
    assert len(town.done) == 6


@pytest.mark.parametrize("resident", [0, 10])
async def test_what_waits_is_no_work_for_restate(restate_url: str, resident: int) -> None:
    app = App(resident=resident)

    @app.workflow
    async def wait(ctx: Context) -> int:
        return await ctx.promise("go", type=int)

    ledger: Any = oncekey.open(restate_url)
    named = f"oncekey.{ledger.store.place.space}.%"

    async def calls() -> list[str]:
        sql = f"SELECT status FROM sys_invocation WHERE target_service_name LIKE '{named}'"
        rows = await ledger.store.arun(lambda cluster: cluster.admin.query(sql))
        return [row["status"] for row in rows if row["status"] != "completed"]

    async def is_quiet() -> bool:
        return set(await calls()) <= {"scheduled"}

    async with app.open(ledger):
        handle = await app.start(wait)
        await waiting(app, handle.id)
        await until(is_quiet)
        assert await calls() == []
        await app.resolve(f"id:{handle.id}:go", 1)
        assert await handle.result(timeout=60) == 1
    ledger.close()
