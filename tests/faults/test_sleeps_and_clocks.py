"""A sleep takes as long as was asked for, whatever is done to the wall clock meanwhile."""

import asyncio
import time
from pathlib import Path

import pytest

import oncekey
from oncekey import App, Context
from oncekey.core.execution import Status

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

HOUR = 3_600_000


class Clock:
    """The machine's, off by so many milliseconds."""

    off = 0

    def now(self) -> int:
        return time.time_ns() // 1_000_000 + self.off

    def steady(self) -> int:
        return time.monotonic_ns() // 1_000_000


def sleeper() -> App:
    app = App()

    @app.workflow
    async def nap(ctx: Context) -> str:
        await ctx.sleep(0.3)
        return "rested"

    return app


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/oncekey.db"


async def lies_down(handle: oncekey.Handle) -> None:
    while (await handle.execution()).status is not Status.WAITING:  # noqa: ASYNC110 - of the store
        await asyncio.sleep(0.001)


async def test_a_clock_that_is_set_right_while_somebody_sleeps(url: str) -> None:
    clock, app = Clock(), sleeper()
    ledger = oncekey.open(url, clock=clock)
    async with app.open(ledger):
        clock.off = HOUR
        handle = await app.start("nap")
        await lies_down(handle)
        clock.off = 0

        assert await handle.result(30) == "rested"
    ledger.close()


async def test_a_clock_that_is_set_right_while_nobody_is_there(tmp_path: Path) -> None:
    url, clock, first = f"sqlite:///{tmp_path}/oncekey.db", Clock(), sleeper()
    clock.off = HOUR
    ledger = oncekey.open(url, clock=clock)
    async with first.open(ledger):
        handle = await first.start("nap", key="n-1")
        await lies_down(handle)
    ledger.close()

    second, ledger = sleeper(), oncekey.open(url, clock=Clock())
    async with second.open(ledger):
        assert await (await second.start("nap", key="n-1")).result(30) == "rested"
    ledger.close()
