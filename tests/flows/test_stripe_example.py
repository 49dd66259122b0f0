"""An order paid by a webhook, shipped on an event, ended by a receipt: over real sockets."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

import oncekey
from oncekey import App, Context
from oncekey.api.app import Api
from oncekey.core.callers import Callers
from oncekey.core.execution import PromiseKind, PromiseState
from oncekey.core.work import ListPromises
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer

pytestmark = pytest.mark.anyio

HOUR = timedelta(hours=1)


@dataclass
class Order:
    id: str
    amount: int


@dataclass
class Payment:
    charge: str
    amount: int


@dataclass
class Receipt:
    order: str
    amount: int


class Shop:
    """The example as it is written, with a nap where it rests for five minutes."""

    def __init__(self, timeout: timedelta = HOUR) -> None:
        self.app = app = App()
        self.charged: list[str] = []
        self.mailed: list[Payment] = []

        async def create_charge(order: Order) -> str:
            self.charged.append(order.id)
            return f"ch_{order.id}"

        @app.task
        async def send_receipt(payment: Payment) -> Receipt:
            self.mailed.append(payment)
            return Receipt(payment.charge.removeprefix("ch_"), payment.amount)

        @app.workflow
        async def process_order(ctx: Context, order: Order) -> Receipt:
            charge_id = await ctx.run("create-charge", create_charge, order)
            payment = await ctx.promise(
                "payment", key=f"stripe:{charge_id}", timeout=timeout, type=Payment
            )
            await ctx.sleep(timedelta(milliseconds=20))
            await ctx.event("shipment:created", where=f"input.order_id == '{order.id}'")
            return await ctx.call(send_receipt, payment, key=f"receipt:{order.id}")


class Site:
    """A shop that is open, and somebody who calls it."""

    def __init__(self, shop: Shop, client: httpx.AsyncClient) -> None:
        self.shop = shop
        self.client = client

    async def post(self, path: str, body: Any, key: str | None = None) -> httpx.Response:
        headers = {} if key is None else {"idempotency-key": key}
        return await self.client.post(path, json=body, headers=headers)

    async def order(self, number: str = "o1", amount: int = 500) -> Any:
        body = {"input": {"id": number, "amount": amount}}
        answer = await self.post("workflows/process_order/start", body, f"order-{number}")
        assert answer.status_code in {200, 201}, answer.text
        return answer.json()

    async def pay(self, number: str = "o1", evt: str = "evt_1", amount: int = 500) -> Any:
        """What the receiver of Stripe's webhooks does."""
        value = {"charge": f"ch_{number}", "amount": amount}
        path = f"promises/key:stripe:ch_{number}/resolve"
        return await self.post(path, {"value": value, "park": True}, evt)

    async def ship(self, order: Any, number: str = "o1") -> httpx.Response:
        await self.until_it_waits_for(order, PromiseKind.EVENT)
        data = {"order_id": number, "parcel": 7}
        return await self.post(
            "events", {"key": "shipment:created", "data": data}, f"shipped-{number}"
        )

    async def until_it_waits_for(self, order: Any, kind: PromiseKind) -> None:
        engine = self.shop.app.engine
        execution = await engine.execution("acme", order["id"])
        query = ListPromises("acme", PromiseState.PENDING, kind, execution.id)
        while not await engine.promises(query):  # noqa: ASYNC110 - the workflow comes to it
            await asyncio.sleep(0.005)

    async def end_of(self, order: Any) -> Any:
        while True:
            found = (await self.client.get(f"workflows/{order['id']}?wait=30s")).json()
            if found["status"] in {"succeeded", "failed", "paused"}:
                return found

    async def kinds(self, order: Any) -> list[str]:
        found = (await self.client.get(f"workflows/{order['id']}/journal")).json()
        return [each["kind"] for each in found["entries"]]


@asynccontextmanager
async def served(api: Api) -> AsyncIterator[str]:
    server = uvicorn.Server(uvicorn.Config(api, port=0, log_level="error", lifespan="on"))
    running = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - it has nothing else to wait for
        await asyncio.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        api.patience.end()
        server.should_exit = True
        await running


@asynccontextmanager
async def opened(url: str, shop: Shop | None = None) -> AsyncIterator[Site]:
    shop, ledger = shop or Shop(), oncekey.open(url)
    callers = Callers(ledger)
    async with shop.app.open(ledger):
        _, secret = await callers.create("acme")
        async with (
            served(Api(shop.app.engine, callers, ledger)) as address,
            httpx.AsyncClient(
                base_url=f"{address}/api/tenants/acme/",
                headers={"x-api-key": secret},
                timeout=60,
                limits=httpx.Limits(max_connections=60),
            ) as client,
        ):
            yield Site(shop, client)
    await ledger.aclose()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/oncekey.db"
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        yield new_schema(server.url())


DONE = {"order": "o1", "amount": 500}


async def test_an_order_goes_its_way(url: str) -> None:
    async with opened(url) as site:
        order = await site.order()
        await site.until_it_waits_for(order, PromiseKind.PROMISE)
        paid = await site.pay()
        assert paid.status_code == 200
        assert paid.json()["promise"]["id"] == f"{order['id']}:payment"
        assert (await site.ship(order)).json()["matched"] == 1
        ended = await site.end_of(order)
        assert (ended["status"], ended["result"]) == ("succeeded", DONE)
        assert await site.kinds(order) == ["run", "promise", "sleep", "event", "call"]
        assert (await site.order())["id"] == order["id"]
        assert site.shop.charged == ["o1"]
        assert site.shop.mailed == [Payment("ch_o1", 500)]


async def test_it_is_paid_before_anybody_waits_for_it(url: str) -> None:
    async with opened(url) as site:
        early = await site.pay()
        assert (early.status_code, early.json()["promise"]) == (202, None)
        order = await site.order()
        await site.ship(order)
        assert (await site.end_of(order))["result"] == DONE
        late = (await site.pay()).json()
        assert (late["already_resolved"], late["idempotency_key_new"]) == (False, False)


async def test_it_is_paid_twice(url: str) -> None:
    async with opened(url) as site:
        order = await site.order()
        await site.until_it_waits_for(order, PromiseKind.PROMISE)
        first, again = await site.pay(), await site.pay()
        assert first.json()["idempotency_key_new"]
        assert again.json() == {**first.json(), "idempotency_key_new": False}
        other = (await site.pay(evt="evt_2", amount=1)).json()
        assert (other["already_resolved"], other["resolved_by"]) == (True, "evt_1")
        await site.ship(order)
        assert (await site.end_of(order))["result"] == DONE


async def test_it_is_paid_by_fifty_at_once(url: str) -> None:
    async with opened(url) as site:
        order = await site.order()
        await site.until_it_waits_for(order, PromiseKind.PROMISE)
        answers = [
            each.json()
            for each in await asyncio.gather(
                *(site.pay(evt=f"evt_{n}", amount=n) for n in range(50))
            )
        ]
        (winner,) = [n for n, each in enumerate(answers) if not each["already_resolved"]]
        assert {each["resolved_by"] for each in answers} == {f"evt_{winner}"}
        await site.ship(order)
        assert (await site.end_of(order))["result"] == {"order": "o1", "amount": winner}
        assert site.shop.mailed == [Payment("ch_o1", winner)]


async def test_fifty_deliver_one_payment_at_once_before_the_order_is_there(url: str) -> None:
    async with opened(url) as site:
        answers = await asyncio.gather(*(site.pay() for _ in range(50)), site.order())
        order = answers.pop()
        assert {each.status_code for each in answers} <= {200, 202}
        assert [each.json()["idempotency_key_new"] for each in answers].count(True) == 1
        await site.ship(order)
        assert (await site.end_of(order))["result"] == DONE


async def test_it_is_paid_after_a_restart(url: str) -> None:
    shop = Shop()
    async with opened(url, shop) as site:
        order = await site.order()
        await site.until_it_waits_for(order, PromiseKind.PROMISE)
    async with opened(url, shop) as site:
        assert (await site.pay()).status_code == 200
        await site.until_it_waits_for(order, PromiseKind.EVENT)
    async with opened(url, shop) as site:
        await site.ship(order)
        assert (await site.end_of(order))["result"] == DONE
        assert await site.kinds(order) == ["run", "promise", "sleep", "event", "call"]
    assert (shop.charged, len(shop.mailed)) == (["o1"], 1)


async def test_it_is_paid_too_late(url: str) -> None:
    async with opened(url, Shop(timeout=timedelta(milliseconds=50))) as site:
        order = await site.order()
        ended = await site.end_of(order)
        assert (ended["status"], ended["error"]["code"]) == ("failed", "promise-timed-out")
        late = await site.pay()
        assert late.status_code in {409, 410}
        assert "timed out" in late.json()["detail"]
        assert (await site.order())["id"] == order["id"]
    assert site.shop.mailed == []
