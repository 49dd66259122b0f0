"""Calls made in steps and tasks carry keys of theirs: on every engine, at every attempt."""

import uuid

import httpx
import pytest

from oncekey import Context, Retry
from oncekey.outbound import (
    AsyncIdempotentTransport,
    IdempotentTransport,
    OutsideOperation,
    derived_key,
)
from tests.conformance.durable.conftest import Workshop

pytestmark = pytest.mark.anyio

SOON = Retry(initial=0.001)


class Bank:
    """Writes down the keys of whoever calls, and fails `failing` times first."""

    def __init__(self, failing: int = 0) -> None:
        self.failing = failing
        self.keys: list[str] = []

    def hear(self, request: httpx.Request) -> httpx.Response:
        self.keys.append(request.headers["idempotency-key"])
        return httpx.Response(200)

    def fail(self) -> None:
        self.failing -= 1
        if self.failing >= 0:
            raise RuntimeError("not today")

    async def charge(self) -> None:
        transport = AsyncIdempotentTransport(httpx.MockTransport(self.hear))
        async with httpx.AsyncClient(transport=transport) as client:
            await client.post("http://bank/charges")
        self.fail()

    def charge_blocking(self) -> None:
        transport = IdempotentTransport(httpx.MockTransport(self.hear))
        with httpx.Client(transport=transport) as client:
            client.post("http://bank/charges")
        self.fail()


async def test_a_step_that_is_tried_again_sends_the_same_key(workshop: Workshop) -> None:
    app, bank = workshop.app(retry=SOON), Bank(failing=2)

    @app.workflow
    async def order(ctx: Context) -> None:
        await ctx.run("charge", bank.charge)
        await ctx.run("charge", bank.charge)
        await ctx.run("charge", bank.charge_blocking)

    async with workshop.open(app):
        await (await app.start(order)).result()
    first, second, third, *others = bank.keys
    assert first == second == third
    assert len({first, *others}) == 3
    assert uuid.UUID(first)


async def test_another_execution_sends_another_key(workshop: Workshop) -> None:
    app, bank = workshop.app(), Bank()

    @app.workflow
    async def order(ctx: Context) -> None:
        await ctx.run("charge", bank.charge)

    async with workshop.open(app):
        for _ in range(2):
            await (await app.start(order)).result()
    assert len(set(bank.keys)) == 2


async def test_a_task_that_is_tried_again_sends_the_same_key(workshop: Workshop) -> None:
    app, bank = workshop.app(retry=SOON), Bank(failing=1)

    @app.task
    async def charge() -> None:
        await bank.charge()

    async with workshop.open(app):
        await (await app.start(charge)).result()
    assert len(bank.keys) == 2
    assert len(set(bank.keys)) == 1


async def test_between_steps_there_is_no_operation(workshop: Workshop) -> None:
    """The code of a workflow is run again and again: it is no place to call others from."""
    app = workshop.app()
    seen: list[object] = []

    @app.workflow
    async def order(ctx: Context) -> None:
        await ctx.run("one", lambda: seen.append(derived_key("x")))
        try:
            derived_key("x")
        except OutsideOperation as error:
            seen.append(error.code)

    async with workshop.open(app):
        await (await app.start(order)).result()
    assert seen[-1] == "outside-operation"
    assert len(seen) >= 2
