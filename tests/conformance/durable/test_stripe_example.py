"""An order that waits for its payment: the webhook comes in time, early, twice, late, or after a
restart."""

import asyncio
import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from oncekey import App, Context, PromiseOver, PromiseTimedOut
from oncekey.core.execution import Status
from tests.conformance.durable.conftest import Workshop, promised, status_of, until, waiting

pytestmark = pytest.mark.anyio


@dataclasses.dataclass
class Order:
    id: str
    amount: int


@dataclasses.dataclass
class Payment:
    charge_id: str
    amount: int


@dataclasses.dataclass
class Receipt:
    order_id: str
    paid: int


class Shop:
    """The workflow as the documentation has it, with shorter times."""

    def __init__(self, workshop: Workshop, timeout: timedelta = timedelta(hours=1)) -> None:
        self.app: App = workshop.app()
        self.charged: list[str] = []
        self.sent: list[str] = []
        app = self.app

        async def create_charge(order: Order) -> str:
            self.charged.append(order.id)
            return f"ch_{order.id}"

        @app.task
        async def send_receipt(payment: Payment) -> Receipt:
            self.sent.append(payment.charge_id)
            return Receipt(payment.charge_id.removeprefix("ch_"), payment.amount)

        @app.workflow
        async def process_order(ctx: Context, order: Order) -> Receipt:
            charge_id = await ctx.run("create-charge", create_charge, order)
            payment = await ctx.promise(
                "payment", key=f"stripe:{charge_id}", timeout=timeout, type=Payment
            )
            await ctx.sleep(timedelta(milliseconds=5))
            await ctx.event("shipment:created", where=f"input.order_id == '{order.id}'")
            return await ctx.call(send_receipt, payment, key=f"receipt:{order.id}")

        self.process_order = process_order

    async def webhook(self, event: str = "evt_1", order: str = "o1") -> Any:
        """What a receiver does with a delivery of the provider."""
        return await self.app.resolve(
            f"key:stripe:ch_{order}",
            {"charge_id": f"ch_{order}", "amount": 5},
            request_key=event,
            park=True,
        )

    async def ship(self, number: str, order: str = "o1") -> None:
        """Once the workflow waits for it."""

        async def look() -> bool:
            steps = [each.name for each in await self.app.engine.journal("default", number)]
            return "sleep" in steps and await status_of(self.app, number) is Status.WAITING

        await until(look)
        await self.app.publish(
            "shipment:created", {"order_id": order}, idempotency_key=f"shipped:{order}"
        )

    def happened_once(self) -> None:
        assert (self.charged, self.sent) == (["o1"], ["ch_o1"])


async def test_as_written(workshop: Workshop) -> None:
    shop = Shop(workshop)
    async with workshop.open(shop.app) as app:
        handle = await app.start(shop.process_order, Order("o1", 5), key="order:o1")
        await waiting(app, handle.id)
        assert not (await shop.webhook()).already_resolved
        await shop.ship(handle.id)
        assert await handle.result(timeout=60) == Receipt("o1", 5)
    shop.happened_once()


async def test_the_webhook_comes_before_the_promise(workshop: Workshop) -> None:
    shop = Shop(workshop)
    async with workshop.open(shop.app) as app:
        assert (await shop.webhook()).promise is None
        handle = await app.start(shop.process_order, Order("o1", 5), key="order:o1")
        await shop.ship(handle.id)
        assert await handle.result(timeout=60) == Receipt("o1", 5)
    shop.happened_once()


async def test_the_webhook_comes_again_and_from_everywhere_at_once(workshop: Workshop) -> None:
    shop = Shop(workshop)
    async with workshop.open(shop.app) as app:
        handle = await app.start(shop.process_order, Order("o1", 5), key="order:o1")
        await waiting(app, handle.id)
        answers = await asyncio.gather(*(shop.webhook(f"evt_{n % 25}") for n in range(50)))
        assert sum(each.key_new and not each.already_resolved for each in answers) == 1
        await shop.ship(handle.id)
        assert await handle.result(timeout=60) == Receipt("o1", 5)
        assert not (await shop.webhook("evt_0")).key_new
    shop.happened_once()


async def test_the_webhook_comes_after_a_restart(workshop: Workshop) -> None:
    shop = Shop(workshop)
    async with workshop.open(shop.app) as app:
        handle = await app.start(shop.process_order, Order("o1", 5), key="order:o1")
        await promised(app, "key:stripe:ch_o1")
        await waiting(app, handle.id)
    async with workshop.open(shop.app) as app:
        await shop.webhook()
        await shop.ship(handle.id)
        found = await app.start(shop.process_order, Order("o1", 5), key="order:o1")
        assert (found.id, found.created) == (handle.id, False)
        assert await found.result(timeout=60) == Receipt("o1", 5)
    shop.happened_once()


async def test_the_webhook_comes_too_late(workshop: Workshop) -> None:
    shop = Shop(workshop, timeout=timedelta(milliseconds=10))
    async with workshop.open(shop.app) as app:
        handle = await app.start(shop.process_order, Order("o1", 5), key="order:o1")
        with pytest.raises(PromiseTimedOut):
            await handle.result(timeout=60)
        with pytest.raises(PromiseOver) as raised:
            await shop.webhook()
    assert raised.value.state == "timed_out"
    assert (shop.charged, shop.sent) == (["o1"], [])
