"""Failures of workflows and tasks: tried again, kept, paused, refused, each by its rule."""

import dataclasses
from typing import Any

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
from oncekey.core.execution import Status
from oncekey.durable.failure import decode_failure
from tests.conformance.durable.conftest import Workshop, status_of

pytestmark = pytest.mark.anyio

QUICK = Retry(attempts=3, initial=0.001, longest=0.002)


@dataclasses.dataclass
class Order:
    id: str
    amount: int


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
