"""Schedules that start workflows, on every store."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import oncekey
from oncekey import App, Context, Ledger
from oncekey.core.work import ListExecutions
from oncekey.schedules import Every, Schedule, Scheduler, StartWorkflow
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.stores import sqlite_url
from tests.fixtures.ticks import MINUTE, START

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        return new_schema(server.url())
    return sqlite_url(tmp_path) if request.param == "sqlite" else "memory://"


@pytest.fixture
def ledger(url: str, clock: FrozenClock) -> Iterator[Ledger]:
    opened = oncekey.open(url, clock=clock, sweep_interval=0)
    yield opened
    opened.close()


class Day:
    """An app whose workflow notes what it was started with."""

    def __init__(self) -> None:
        self.closed: list[Any] = []
        self.app = App()

        @self.app.workflow
        async def close_the_day(ctx: Context, shop: int) -> str:
            self.closed.append(shop)
            return f"closed {shop}"

        @self.app.workflow
        async def nothing(ctx: Context) -> None:
            self.closed.append(None)


def starting(workflow: str = "close_the_day", data: Any = 7, **options: Any) -> Schedule:
    options = {"id": "nightly", "timing": Every(MINUTE), **options}
    return Schedule(target=StartWorkflow(workflow, data), **options)


async def keys(day: Day, tenant: str = "default") -> list[str | None]:
    found = await day.app.engine.executions(ListExecutions(tenant, limit=5000))
    return sorted(each.key or "" for each in found)


async def test_each_tick_starts_the_workflow_by_its_key(ledger: Ledger, clock: FrozenClock) -> None:
    day = Day()
    async with day.app.open(ledger):
        scheduler = Scheduler(ledger, day.app.engine, [starting(tenant="acme")])
        await scheduler.declare()
        for _ in range(3):
            clock.advance(MINUTE)
            (ran,) = await scheduler.run_once()
            handle = await day.app.handle(ran.text, tenant="acme")
            assert await handle.result(timeout=30) == "closed 7"
        await scheduler.close()
        ticks = [f"sched:nightly:{START + minute * MINUTE}" for minute in (1, 2, 3)]
        assert await keys(day, "acme") == ticks
        assert await keys(day, "default") == []
    assert day.closed == [7, 7, 7]


async def test_a_workflow_may_take_nothing(ledger: Ledger, clock: FrozenClock) -> None:
    day = Day()
    async with day.app.open(ledger):
        scheduler = Scheduler(ledger, day.app.engine, [starting("nothing", None)])
        await scheduler.declare()
        clock.advance(MINUTE)
        (ran,) = await scheduler.run_once()
        await (await day.app.handle(ran.text)).result(timeout=30)
        await scheduler.close()
    assert day.closed == [None]


async def test_a_workflow_nobody_knows_fails_its_tick_and_not_the_next(
    ledger: Ledger, clock: FrozenClock, caplog: pytest.LogCaptureFixture
) -> None:
    day = Day()
    async with day.app.open(ledger):
        scheduler = Scheduler(ledger, day.app.engine, [starting("clsoe_the_day")])
        await scheduler.declare()
        clock.advance(MINUTE)
        (ran,) = await scheduler.run_once()
        assert (ran.ok, ran.text.partition(":")[0]) == (False, "name-unknown")
        mended = Scheduler(ledger, day.app.engine, [starting()])
        await mended.declare()
        clock.advance(MINUTE)
        (ran,) = await mended.run_once()
        assert ran.ok
        await scheduler.close()
        await mended.close()
    assert "tick 1699999260000 failed: name-unknown" in caplog.text


async def test_schedulers_side_by_side_start_one_workflow_per_tick(
    url: str, ledger: Ledger, clock: FrozenClock
) -> None:
    """Each looks when the others have looked and dispatched, at the same moment of the clock."""
    days = [Day() for _ in range(3)]
    shared = url.startswith("memory")
    ledgers = [ledger if shared else oncekey.open(url, clock=clock, sweep_interval=0) for _ in days]
    schedulers = []
    for day, each in zip(days, ledgers, strict=True):
        engine = day.app.engine_on(each)
        await engine.open()
        schedulers.append((Scheduler(each, engine, [starting(missed="all")]), engine))
    await schedulers[0][0].declare()
    for _ in range(5):
        clock.advance(MINUTE)
        for scheduler, _ in schedulers:
            await scheduler.run_once()
    found = await schedulers[0][1].executions(ListExecutions("default"))
    assert Counter(each.key for each in found) == {
        f"sched:nightly:{START + minute * MINUTE}": 1 for minute in range(1, 6)
    }
    for (scheduler, engine), each in zip(schedulers, ledgers, strict=True):
        await scheduler.close()
        await engine.close()
        if not shared:
            each.close()


async def test_a_tick_that_was_started_before_its_input_changed_counts(
    ledger: Ledger, clock: FrozenClock
) -> None:
    """As after a crash between the start and what is noted of it, and a new configuration."""
    day = Day()
    async with day.app.open(ledger):
        key = f"sched:nightly:{START + MINUTE}"
        await day.app.start("close_the_day", 7, key=key)
        scheduler = Scheduler(ledger, day.app.engine, [starting(data=8)])
        await scheduler.declare()
        clock.advance(MINUTE)
        (ran,) = await scheduler.run_once()
        assert (ran.ok, ran.text) == (True, "started before, with another input")
        await scheduler.close()
        assert await keys(day) == [key]


async def test_without_an_engine_workflows_are_left_to_others(
    ledger: Ledger, clock: FrozenClock, caplog: pytest.LogCaptureFixture
) -> None:
    day = Day()
    without = Scheduler(ledger, None, [starting()])
    await without.declare()
    clock.advance(MINUTE)
    assert await without.run_once() == []
    assert "this process has no engine to start workflows with" in caplog.text
    async with day.app.open(ledger):
        other = Scheduler(ledger, day.app.engine)
        assert [ran.ok for ran in await other.run_once()] == [True]
        await other.close()
    await without.close()


async def test_many_missed_ticks_are_made_up_for_in_bounded_goes(
    clock: FrozenClock, caplog: pytest.LogCaptureFixture
) -> None:
    day, ledger = Day(), oncekey.open("memory://", clock=clock, sweep_interval=0)
    async with day.app.open(ledger):
        often = starting(id="often", timing=Every(1000), missed="all")
        scheduler = Scheduler(ledger, day.app.engine, [often])
        await scheduler.declare()
        clock.advance(1_500_000)
        assert len(await scheduler.run_once()) == 1000
        assert "schedule often: made up for 1000 ticks, more to come" in caplog.text
        assert len(await scheduler.run_once()) == 500
        await scheduler.close()
        assert await keys(day) == [f"sched:often:{START + n * 1000}" for n in range(1, 1501)]
    ledger.close()
