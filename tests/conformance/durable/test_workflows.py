"""Workflows and tasks: steps are done once, values keep their types, failures are kept."""

import asyncio
import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pydantic
import pytest

from oncekey import (
    CallFailed,
    Context,
    InvalidInput,
    NameUnknown,
    PayloadTooLarge,
    Retry,
    StepFailed,
    TerminalError,
)
from oncekey.core.execution import Status, Step
from oncekey.durable.failure import decode_failure
from tests.conformance.durable.conftest import Workshop, promised, status_of, until, waiting

pytestmark = pytest.mark.anyio

QUICK = Retry(attempts=3, initial=0.001, longest=0.002)


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


async def test_a_step_that_fails_is_tried_again(workshop: Workshop) -> None:
    app = workshop.app(retry=QUICK)
    tries: list[int] = []

    def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise OSError("not yet")
        return "done"

    @app.workflow
    async def stubborn(ctx: Context) -> str:
        return await ctx.run("flaky", flaky)

    async with workshop.open(app):
        handle = await app.start(stubborn)
        assert await handle.result(timeout=20) == "done"
        (entry,) = await app.engine.journal("default", handle.id)
    assert len(tries) == 3
    assert entry.attempts == 3


async def test_a_terminal_error_is_the_outcome_of_its_step(workshop: Workshop) -> None:
    app = workshop.app()
    tries: list[int] = []

    async def refuse() -> None:
        tries.append(1)
        raise TerminalError("card declined", status=402)

    @app.workflow
    async def caught(ctx: Context) -> str:
        try:
            await ctx.run("charge", refuse)
        except TerminalError as error:
            await ctx.sleep(0.001)
            return f"{error} {error.status}"
        return "charged"

    @app.workflow
    async def uncaught(ctx: Context) -> None:
        await ctx.run("charge", refuse)

    async with workshop.open(app):
        handle = await app.start(caught)
        assert await handle.result(timeout=20) == "card declined 402"
        assert len(tries) == 1
        handle = await app.start(uncaught)
        with pytest.raises(TerminalError, match="card declined"):
            await handle.result(timeout=20)
        assert await status_of(app, handle.id) is Status.FAILED
    assert len(tries) == 2


@pytest.mark.parametrize(
    "rule, status", [("pause", Status.PAUSED), ("kill", Status.FAILED), ("raise", Status.FAILED)]
)
async def test_what_happens_after_the_last_attempt(
    workshop: Workshop, rule: Any, status: Status
) -> None:
    app = workshop.app(retry=Retry(attempts=2, initial=0.001, on_max_attempts=rule))
    broken, tries = [True], []

    async def step() -> str:
        tries.append(1)
        if broken:
            raise ValueError("broken")
        return "mended"

    @app.workflow
    async def fragile(ctx: Context) -> str:
        return await ctx.run("step", step)

    async with workshop.open(app):
        handle = await app.start(fragile)
        ended = await app.engine.wait("default", handle.id, 20)
        assert ended.status is status
        assert "failed 2 times" in decode_failure(ended.result).message
        assert "broken" in decode_failure(ended.result).message
        assert len(tries) == 2
        if rule == "pause":
            broken.clear()
            answer = await app.resume(handle.id, request_key="again")
            assert not answer.replayed
            assert await handle.result(timeout=20) == "mended"
        else:
            with pytest.raises(TerminalError, match="broken"):
                await handle.result()


async def test_a_failed_step_can_be_made_good(workshop: Workshop) -> None:
    app = workshop.app()

    def fail() -> None:
        raise ValueError("no")

    @app.workflow
    async def careful(ctx: Context) -> str:
        try:
            await ctx.run("f", fail, retry=Retry(attempts=1, on_max_attempts="raise"))
        except StepFailed:
            return await ctx.run("undo", str, "undone")
        return ""

    async with workshop.open(app):
        assert await (await app.start(careful)).result(timeout=20) == "undone"


async def test_code_that_raises_is_run_again_from_its_journal(workshop: Workshop) -> None:
    app = workshop.app(retry=QUICK)
    steps: list[int] = []
    tries: list[int] = []

    @app.workflow
    async def clumsy(ctx: Context) -> int:
        await ctx.run("step", steps.append, 1)
        tries.append(1)
        if len(tries) < 3:
            raise KeyError("a bug that goes away")
        return len(steps)

    async with workshop.open(app):
        assert await (await app.start(clumsy)).result(timeout=20) == 1
    assert len(tries) == 3


@pytest.mark.parametrize("rule, status", [("pause", Status.PAUSED), ("raise", Status.FAILED)])
async def test_code_that_always_raises_is_given_up(
    workshop: Workshop, rule: Any, status: Status
) -> None:
    app = workshop.app(retry=Retry(attempts=2, initial=0.001, on_max_attempts=rule))

    @app.workflow
    async def broken(ctx: Context) -> None:
        raise KeyError("a bug that stays")

    async with workshop.open(app):
        handle = await app.start(broken)
        ended = await app.engine.wait("default", handle.id, 20)
    assert ended.status is status
    assert "a bug that stays" in decode_failure(ended.result).message


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


async def test_a_child_that_fails_fails_its_call(workshop: Workshop) -> None:
    app = workshop.app()

    @app.task
    async def refuse() -> None:
        raise TerminalError("never")

    @app.workflow
    async def parent(ctx: Context) -> str:
        try:
            await ctx.call(refuse)
        except CallFailed as error:
            return str(error)
        return ""

    async with workshop.open(app):
        told = await (await app.start(parent)).result(timeout=20)
    assert "refuse failed: never" in told


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


async def test_a_workflow_that_takes_too_long_fails(workshop: Workshop) -> None:
    app = workshop.app()

    @app.workflow(timeout=0.05)
    async def endless(ctx: Context) -> None:
        await ctx.promise("never")

    async with workshop.open(app):
        handle = await app.start(endless)
        with pytest.raises(TerminalError, match="not over in time") as raised:
            await handle.result(timeout=20)
    assert raised.value.code == "execution-timed-out"


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


async def test_what_cannot_be_done_is_refused_clearly(workshop: Workshop) -> None:
    app = workshop.app()

    @app.workflow
    async def typed(ctx: Context, order: Order) -> object:
        return object()

    @app.workflow
    async def heavy(ctx: Context) -> str:
        return await ctx.run("heavy", lambda: "x" * (2 << 20))

    async with workshop.open(app):
        with pytest.raises(NameUnknown, match="no workflow 'missing'"):
            await app.start("missing", 1)
        with pytest.raises(InvalidInput, match="amount"):
            await app.engine.start("default", app.definitions[0].sort, "typed", b'{"id": "x"}')
        with pytest.raises(PayloadTooLarge, match="input of typed"):
            await app.engine.start(
                "default", app.definitions[0].sort, "typed", b'"' + b"x" * (2 << 20) + b'"'
            )
        handle = await app.start(typed, Order("o", 1))
        with pytest.raises(TerminalError, match="the result of typed"):
            await handle.result(timeout=20)
        handle = await app.start(heavy)
        with pytest.raises(TerminalError, match="the result of the step 'heavy'"):
            await handle.result(timeout=20)
