"""Workflows and tasks: steps are done once, values keep their types, failures are kept."""

import asyncio
import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pydantic
import pytest

from oncekey import (
    Context,
)
from oncekey.core.execution import Step
from tests.conformance.durable.conftest import Workshop, promised, until, waiting

pytestmark = pytest.mark.anyio


@dataclasses.dataclass
class Order:
    id: str
    amount: int


class Charge(msgspec.Struct):
    id: str
    order: Order


class Receipt(pydantic.BaseModel):
    charge: str
    total: int


async def test_values_keep_their_types_from_end_to_end(workshop: Workshop) -> None:
    app = workshop.app()
    seen: list[Any] = []

    def charge(order: Order) -> Charge:
        return Charge("ch_1", order)

    @app.task
    async def receipt(charge: Charge) -> Receipt:
        seen.append(charge)
        return Receipt(charge=charge.id, total=charge.order.amount)

    @app.workflow
    async def process(ctx: Context, order: Order) -> Receipt:
        seen.append(order)
        charged = await ctx.run("charge", charge, order)
        await ctx.sleep(0.001)
        seen.append(charged)
        return await ctx.call(receipt, charged)

    async with workshop.open(app):
        handle = await app.start(process, Order("o1", 5))
        assert await handle.result(timeout=20) == Receipt(charge="ch_1", total=5)
    charged = Charge("ch_1", Order("o1", 5))
    assert all(each in (Order("o1", 5), charged) for each in seen)
    assert charged in seen


async def test_a_finished_step_is_not_done_again(workshop: Workshop) -> None:
    app = workshop.app()
    done: list[str] = []

    async def step(name: str) -> str:
        done.append(name)
        return name.upper()

    @app.workflow
    async def letters(ctx: Context) -> str:
        text = await ctx.run("a", step, "a")
        await ctx.promise("go")
        text += await ctx.run("b", step, "b")
        await ctx.promise("on")
        return text + await ctx.run("c", step, "c")

    async with workshop.open(app):
        handle = await app.start(letters)
        await waiting(app, handle.id)
    async with workshop.open(app):
        await app.resolve(f"id:{handle.id}:go")
        found = await app.handle(handle.id)
        await until(lambda: _has_step(app, handle.id, "b"))
        await waiting(app, handle.id)
        await app.resolve(f"id:{handle.id}:on")
        assert await found.result(timeout=20) == "ABC"
        journal = await app.engine.journal("default", handle.id)
    assert done == ["a", "b", "c"]
    assert [(entry.step, entry.name) for entry in journal] == [
        (Step.RUN, "a"),
        (Step.PROMISE, "go"),
        (Step.RUN, "b"),
        (Step.PROMISE, "on"),
        (Step.RUN, "c"),
    ]


async def _has_step(app: Any, number: str, name: str) -> bool:
    return any(each.name == name for each in await app.engine.journal("default", number))


async def test_branches_run_side_by_side_and_are_replayed_alike(workshop: Workshop) -> None:
    app = workshop.app()
    done: list[str] = []

    async def step(name: str) -> str:
        done.append(name)
        return name

    @app.workflow
    async def fan(ctx: Context) -> list[str]:
        async def branch(name: str) -> str:
            first = await ctx.run(f"{name}1", step, f"{name}1")
            told = await ctx.promise(name)
            last = await ctx.run(f"{name}2", step, f"{name}2")
            return f"{first}{told}{last}"

        return await asyncio.gather(branch("a"), branch("b"), branch("c"))

    async with workshop.open(app):
        handle = await app.start(fan)
        await waiting(app, handle.id)
    async with workshop.open(app):
        for name in "cab":
            await app.resolve(f"id:{handle.id}:{name}", name.upper())
        result = await (await app.handle(handle.id)).result(timeout=20)
    assert result == ["a1Aa2", "b1Bb2", "c1Cc2"]
    assert sorted(done) == ["a1", "a2", "b1", "b2", "c1", "c2"]


async def test_time_and_randomness_are_the_same_in_every_replay(workshop: Workshop) -> None:
    app = workshop.app()
    seen: list[Any] = []

    @app.workflow
    async def dice(ctx: Context) -> None:
        seen.append((ctx.now(), ctx.uuid(), ctx.random().random(), ctx.uuid()))
        await ctx.promise("again")
        seen.append(ctx.now())

    async with workshop.open(app):
        before = datetime.now(UTC) - timedelta(seconds=1)
        handle = await app.start(dice)
        await waiting(app, handle.id)
    async with workshop.open(app):
        await app.resolve(f"id:{handle.id}:again")
        await (await app.handle(handle.id)).result(timeout=20)
        journal = await app.engine.journal("default", handle.id)
    first, again, last = seen
    assert first == again
    assert first[1] != first[3]
    assert before < first[0] <= last
    assert round(last.timestamp() * 1000) == journal[0].at


async def test_children_are_started_by_key_and_waited_for(workshop: Workshop) -> None:
    app = workshop.app()
    made: list[str] = []

    @app.task
    def make(name: str) -> str:
        made.append(name)
        return name.upper()

    @app.workflow
    async def child(ctx: Context, name: str) -> str:
        return await ctx.run("make", make, name)

    @app.workflow
    async def parent(ctx: Context, name: str) -> list[str]:
        first = await ctx.call(child, name, key=f"child:{name}")
        again = await ctx.call(child, name, key=f"child:{name}")
        other = await ctx.call(make, name)
        started = await ctx.start(make, name, key=f"task:{name}")
        return [first, again, other, started]

    async with workshop.open(app):
        handles = [await app.start(parent, "x"), await app.start(parent, "x")]
        one, two = [await handle.result(timeout=20) for handle in handles]
        assert one[:3] == two[:3] == ["X", "X", "X"]
        assert one[3] == two[3]
        assert await (await app.handle(one[3])).result(timeout=20) == "X"
    # Once for the keyed child, twice without a key, once for the keyed task.
    assert made == ["x"] * 4


async def test_a_child_key_of_another_input_is_refused_in_every_replay(workshop: Workshop) -> None:
    app = workshop.app()

    @app.task
    async def echo(text: str) -> str:
        return text

    @app.workflow
    async def parent(ctx: Context) -> list[str]:
        told = [await ctx.call(echo, "one", key="k")]
        for way in (ctx.call, ctx.start):
            try:
                await way(echo, "two", key="k")
            except Exception as error:  # noqa: BLE001 - looked at below
                told.append(str(error))
        await ctx.promise("p")
        return told

    async with workshop.open(app):
        handle = await app.start(parent)
        await promised(app, f"id:{handle.id}:p")
        await waiting(app, handle.id)
    async with workshop.open(app):
        await app.resolve(f"id:{handle.id}:p")
        told = await (await app.handle(handle.id)).result(timeout=20)
    assert told[0] == "one"
    assert len(told) == 3
    assert all("first used with another name or input" in each for each in told[1:])


async def test_no_more_run_at_once_than_allowed(workshop: Workshop) -> None:
    app = workshop.app(concurrency=3)
    now: list[int] = [0]
    most: dict[str, int] = {}

    async def work(name: str) -> None:
        now[0] += 1
        most["all"] = max(most.get("all", 0), now[0])
        await asyncio.sleep(0.002)
        now[0] -= 1

    @app.workflow(concurrency=2)
    async def few(ctx: Context, number: int) -> int:
        most["few now"] = most.get("few now", 0) + 1
        most["few"] = max(most.get("few", 0), most["few now"])
        await ctx.run("work", work, "few")
        most["few now"] -= 1
        return number

    @app.task
    async def many(number: int) -> int:
        await work("many")
        return number

    async with workshop.open(app):
        handles = [await app.start(few, number) for number in range(12)]
        handles += [await app.start(many, number) for number in range(12)]
        results = [await handle.result(timeout=30) for handle in handles]
    assert results == [*range(12), *range(12)]
    assert most["few"] <= 2
    assert most["all"] <= 3
