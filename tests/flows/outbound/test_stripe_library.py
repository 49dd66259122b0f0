"""The official library of Stripe inside of operations, and a Stripe that takes keys seriously."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import pytest
import stripe

import oncekey
from oncekey import Context, Ledger, Retry
from oncekey.outbound import protect
from tests.fixtures.stripe_api import StripeApi, stripe_api

# The library hands its body to httpx in the old way.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content:DeprecationWarning")

PAYMENT: Any = {"amount": 499, "currency": "eur"}


@pytest.fixture
def api() -> Iterator[tuple[StripeApi, str]]:
    with stripe_api() as made:
        yield made


@contextmanager
def paying(url: str, http: stripe.HTTPXClient | None = None) -> Iterator[stripe.StripeClient]:
    chosen = http or protect(stripe.HTTPXClient(allow_sync_methods=True))
    yield _client(url, chosen)
    chosen.close()


@asynccontextmanager
async def apaying(url: str) -> AsyncIterator[stripe.StripeClient]:
    http = protect(stripe.HTTPXClient())
    yield _client(url, http)
    await http.close_async()


def _client(url: str, http: stripe.HTTPXClient) -> stripe.StripeClient:
    return stripe.StripeClient(
        "sk_test_1", base_addresses={"api": url}, http_client=http, max_network_retries=2
    )


def test_a_retry_of_the_operation_pays_once(ledger: Ledger, api: tuple[StripeApi, str]) -> None:
    fake, url = api
    attempts = 0

    def order() -> list[str]:
        nonlocal attempts
        attempts += 1
        with paying(url) as client:
            made: list[Any] = [client.v1.payment_intents.create(PAYMENT) for _ in range(2)]
            made.append(client.v1.refunds.create({"payment_intent": made[0].id}))
        if attempts < 3:
            raise ZeroDivisionError
        return [each.id for each in made]

    for _ in range(2):
        with suppress(ZeroDivisionError):
            ledger.once("order:1", order)
    made = ledger.once("order:1", order)
    # Two payments, because the code makes two; each of them once.
    assert sorted(made) == sorted(fake.objects)
    assert len(fake.payments) == 2
    assert len(fake.keys) == 9
    assert len(set(fake.keys)) == 3


def test_without_it_the_library_draws_a_key_for_each(
    ledger: Ledger, api: tuple[StripeApi, str]
) -> None:
    """What the transport is for."""
    fake, url = api

    def order() -> None:
        with paying(url, stripe.HTTPXClient(allow_sync_methods=True)) as client:
            client.v1.payment_intents.create(PAYMENT)
        raise ZeroDivisionError

    for _ in range(2):
        with suppress(ZeroDivisionError):
            ledger.once("order:1", order)
    assert len(fake.payments) == 2


def test_retries_of_the_library_itself_are_no_other_calls(
    ledger: Ledger, api: tuple[StripeApi, str]
) -> None:
    fake, url = api
    fake.lost = 1

    async def order() -> str:
        async with apaying(url) as client:
            first = await client.v1.payment_intents.create_async(PAYMENT)
            second = await client.v1.payment_intents.create_async(PAYMENT)
        return f"{first.id} {second.id}"

    made = asyncio.run(ledger.aonce("order:1", order))
    assert made.split() == list(fake.objects)
    assert len(fake.keys) == 3
    assert len(set(fake.keys)) == 2


def test_a_key_of_the_applications_own_is_kept(ledger: Ledger, api: tuple[StripeApi, str]) -> None:
    fake, url = api

    def order() -> None:
        with paying(url) as client:
            own: Any = {"idempotency_key": "order-7-payment"}
            client.v1.payment_intents.create(PAYMENT, own)

    ledger.once("order:1", order)
    assert fake.keys == ["order-7-payment"]


async def pay_in_a_workflow(url: str) -> str:
    flows = oncekey.App(retry=Retry(initial=0.001))
    attempts = 0

    @flows.workflow
    async def order(ctx: Context) -> str:
        return await ctx.run("pay", pay)

    async def pay() -> str:
        nonlocal attempts
        attempts += 1
        async with apaying(url) as client:
            made = await client.v1.payment_intents.create_async(PAYMENT)
        if attempts < 3:
            raise OSError("the step fails after the payment")
        return made.id

    async with flows.open("memory://"):
        paid: str = await (await flows.start(order)).result()
    assert attempts == 3
    return paid


def test_a_step_of_a_workflow_pays_once(api: tuple[StripeApi, str]) -> None:
    fake, url = api
    paid = asyncio.run(pay_in_a_workflow(url))
    assert [each["id"] for each in fake.payments] == [paid]
    assert len(fake.keys) == 3
