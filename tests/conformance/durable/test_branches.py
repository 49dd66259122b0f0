"""Tasks of one workflow, what they do to each other, and what is told once and always."""

import asyncio
from typing import Any

import pytest

from oncekey import App, Context, Retry, TerminalError
from oncekey.core.execution import Status
from oncekey.durable.failure import decode_failure
from tests.conformance.durable.conftest import Workshop, promises_of, until, waiting

pytestmark = pytest.mark.anyio

QUICK = Retry(attempts=5, initial=0.001, longest=0.002)


async def end_of(app: App, number: str) -> Any:
    found = await app.engine.wait("default", number, 60)
    assert found.status is Status.PAUSED or found.status.is_over
    return found


# -- what tasks do to each other ---------------------------------------------------------------


async def test_a_cancellation_that_escapes_ends_the_workflow(workshop: Workshop) -> None:
    app = workshop.app()

    @app.workflow
    async def careless(ctx: Context) -> None:
        waiter = asyncio.ensure_future(ctx.promise("never"))
        await ctx.run("step", str, "x")
        waiter.cancel()
        await waiter

    async with workshop.open(app):
        handle = await app.start(careless)
        found = await end_of(app, handle.id)
    assert found.status is Status.FAILED
    assert "cancelled itself" in decode_failure(found.result).message


class Quit(BaseException):
    """What a library raises that wants out of everything."""


@pytest.mark.parametrize(
    "error, where",
    [(error, where) for error in (Quit, SystemExit) for where in ("step", "thread", "code")]
    # Code that raises this cancels itself.
    + [(asyncio.CancelledError, where) for where in ("step", "thread")],
)
async def test_whatever_is_raised_is_a_failure_and_tried_again(
    workshop: Workshop, error: type[BaseException], where: str
) -> None:
    app = workshop.app(retry=QUICK)
    tries: list[int] = []

    def fails() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise error
        return "done"

    async def fails_on_the_loop() -> str:
        return fails()

    @app.workflow
    async def flow(ctx: Context) -> str:
        if where == "code":
            return fails()
        return await ctx.run("step", fails if where == "thread" else fails_on_the_loop)

    async with workshop.open(app):
        assert await (await app.start(flow)).result(timeout=60) == "done"
    assert len(tries) == 3


@pytest.mark.parametrize("way", ["gather", "group"])
async def test_code_begins_anew_only_when_its_branches_have_ended(
    workshop: Workshop, way: str
) -> None:
    """A branch fails while another is in the middle of a step: that step is done once."""
    app = workshop.app(retry=QUICK)
    done: list[str] = []
    failed: list[int] = []
    go = asyncio.Event()

    async def slow(name: str) -> str:
        done.append(f"{name} begins")
        await go.wait()
        done.append(f"{name} ends")
        return name

    @app.workflow
    async def flow(ctx: Context) -> list[str]:
        async def first() -> str:
            told = await ctx.run("slow", slow, "slow")
            await ctx.run("then", done.append, "then")
            return told

        async def second() -> str:
            await ctx.run("quick", str, "x")
            if not failed:
                failed.append(1)
                asyncio.get_running_loop().call_later(0.05, go.set)
                raise OSError("the second fails as the first is at work")
            return "second"

        if way == "gather":
            return await asyncio.gather(first(), second())
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(first()), group.create_task(second())]
        return [task.result() for task in tasks]

    async with workshop.open(app):
        handle = await app.start(flow)
        if way == "group":
            # A group stops its others itself: the step is interrupted, and done again.
            assert await handle.result(timeout=60) == ["slow", "second"]
            assert done.count("slow ends") == 1
        else:
            assert await handle.result(timeout=60) == ["slow", "second"]
            assert done == ["slow begins", "slow ends", "then"]


async def test_a_failure_of_a_group_is_what_its_task_failed_with(workshop: Workshop) -> None:
    app = workshop.app()
    tries: list[int] = []

    async def refuse() -> None:
        tries.append(1)
        raise TerminalError("card declined", status=402)

    @app.workflow
    async def flow(ctx: Context) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.run("charge", refuse))
            group.create_task(ctx.promise("never"))

    async with workshop.open(app):
        handle = await app.start(flow)
        with pytest.raises(TerminalError, match="card declined"):
            await handle.result(timeout=60)
    assert len(tries) == 1


async def test_the_first_of_several_wins_and_the_others_are_given_up(workshop: Workshop) -> None:
    app = workshop.app()

    @app.workflow
    async def race(ctx: Context) -> str:
        racers = [asyncio.ensure_future(ctx.promise(name, type=str)) for name in ("a", "b")]
        done, left = await asyncio.wait(racers, return_when=asyncio.FIRST_COMPLETED)
        for each in left:
            each.cancel()
        return done.pop().result()

    async with workshop.open(app):
        handle = await app.start(race)
        await waiting(app, handle.id)
    async with workshop.open(app):
        await app.resolve(f"id:{handle.id}:b", "B")
        assert await (await app.handle(handle.id)).result(timeout=60) == "B"


async def test_branches_hand_results_on_before_the_workflow_lies_down(workshop: Workshop) -> None:
    """A result goes from task to task until the last of them has something to do."""
    app = workshop.app()
    done: list[str] = []

    async def step(name: str) -> str:
        done.append(name)
        return name

    @app.workflow
    async def relay(ctx: Context) -> list[str]:
        async def carry(depth: int) -> str:
            if depth:
                (told,) = await asyncio.gather(carry(depth - 1))
                return str(told)
            return await ctx.promise("baton", type=str)

        other = asyncio.ensure_future(ctx.promise("other", type=str))
        told = await asyncio.gather(carry(4))
        last = await ctx.run("last", step, *told)
        return [last, await other]

    async with workshop.open(app):
        for number in range(5):
            handle = await app.start(relay)
            await waiting(app, handle.id)
            await app.resolve(f"id:{handle.id}:baton", f"baton {number}")

            async def is_done(wanted: int = number + 1) -> bool:
                return len(done) == wanted

            await until(is_done)
            await app.resolve(f"id:{handle.id}:other", "other")
            assert await handle.result(timeout=60) == [f"baton {number}", "other"]


# -- what is told once is told always ----------------------------------------------------------


@pytest.mark.parametrize("result", ["no json", "too large"])
async def test_a_result_that_cannot_be_kept_fails_its_step_for_good(
    workshop: Workshop, result: str
) -> None:
    app = workshop.app()
    tries: list[int] = []

    async def step() -> Any:
        tries.append(1)
        return object() if result == "no json" else "x" * (2 << 20)

    @app.workflow
    async def flow(ctx: Context) -> list[str]:
        told = []
        try:
            await ctx.run("step", step)
        except TerminalError as error:
            told.append(error.code)
        await ctx.promise("go")
        await ctx.run("more", str, "x")
        await ctx.promise("on")
        return told

    async with workshop.open(app):
        handle = await app.start(flow)
        for name in ("go", "on"):

            async def is_asked(name: str = name) -> bool:
                return any(each.name == name for each in await promises_of(app, handle.id))

            await until(is_asked)
            await app.resolve(f"id:{handle.id}:{name}")
        told = await handle.result(timeout=60)
        (entry, *_) = await app.engine.journal("default", handle.id)
    assert told == ["value-unserialisable" if result == "no json" else "payload-too-large"]
    assert (entry.name, entry.failed) == ("step", True)
    assert len(tries) == 1


async def test_a_step_cannot_use_the_context(workshop: Workshop) -> None:
    """A replay would not come there: what it did would be in nobody's journal."""
    app = workshop.app()

    @app.workflow
    async def nested(ctx: Context) -> str:
        async def outer() -> str:
            return await ctx.run("inner", str, "x")

        return await ctx.run("outer", outer)

    async with workshop.open(app):
        handle = await app.start(nested)
        with pytest.raises(TerminalError, match="a step cannot use the context"):
            await handle.result(timeout=60)
        journal = await app.engine.journal("default", handle.id)
    assert [(entry.name, entry.failed) for entry in journal] == [("outer", True)]


@pytest.mark.parametrize("name", ["", "a\0b", "a\ud800b", "x" * 201])
async def test_a_step_has_a_name_that_can_be_kept(workshop: Workshop, name: str) -> None:
    app = workshop.app()

    @app.workflow
    async def flow(ctx: Context) -> str:
        return await ctx.run(name, str, "x")

    async with workshop.open(app):
        handle = await app.start(flow)
        with pytest.raises(TerminalError, match="1 to 200 printable characters"):
            await handle.result(timeout=60)


async def test_branches_of_branches_are_known_again_whoever_was_first(workshop: Workshop) -> None:
    """In a replay what was waited for is there at once: branches come in another order then."""
    app = workshop.app()
    done: list[str] = []
    seen: dict[str, list[Any]] = {"a": [], "b": []}

    async def step(name: str) -> str:
        done.append(name)
        return name

    @app.workflow
    async def tree(ctx: Context) -> list[list[str]]:
        async def leaf(name: str) -> str:
            seen[name[0]].append((name, ctx.uuid(), ctx.now()))
            return await ctx.run("leaf", step, name)

        async def item(name: str) -> list[str]:
            await ctx.promise(name)
            told = await asyncio.gather(leaf(f"{name}1"), leaf(f"{name}2"))
            await ctx.promise(f"{name}-end")
            return [*told, await ctx.run("item", step, name)]

        return await asyncio.gather(item("a"), item("b"))

    async with workshop.open(app):
        handle = await app.start(tree)
        await waiting(app, handle.id)
        for name in "ba":
            await app.resolve(f"id:{handle.id}:{name}")

            async def goes_on(name: str = name) -> bool:
                return any(each.name == f"{name}-end" for each in await promises_of(app, handle.id))

            await until(goes_on)
            await waiting(app, handle.id)
    async with workshop.open(app):
        for name in "ab":
            await app.resolve(f"id:{handle.id}:{name}-end")
        told = await (await app.handle(handle.id)).result(timeout=60)
    assert told == [["a1", "a2", "a"], ["b1", "b2", "b"]]
    assert sorted(done) == ["a", "a1", "a2", "b", "b1", "b2"]
    for each in seen.values():
        # Time and randomness are a branch's own, and the same in every replay.
        assert len(each) >= 4
        assert len(set(each)) == 2
