"""A delivery resolves the promise of a workflow, however early, often, or late it comes."""

import asyncio
from typing import Any

import pytest

from oncekey import App, Context, Ledger
from oncekey.core.events import Tally
from oncekey.core.execution import PromiseState
from oncekey.durable.address import ByKey
from oncekey.durable.app import Handle
from tests.fixtures.post import TENANT, Post, Webhook, header, post_on, told

pytestmark = pytest.mark.anyio

THEN = 'resolve:"stripe:" + body.data.object.id'


def event(identifier: str = "evt_1", payment: str = "pi_1", **more: Any) -> dict[str, Any]:
    return {"id": identifier, "data": {"object": {"id": payment, "amount": 500}}, **more}


def shop() -> App:
    app = App()

    @app.workflow
    async def order(ctx: Context, number: str) -> Any:
        paid = await ctx.promise("payment", key=f"stripe:{number}", timeout=3600)
        return paid["data"]["object"]["amount"]

    return app


async def start(post: Post, payment: str = "pi_1") -> Handle:
    return await post.app.start("order", payment, tenant=TENANT)


async def waiting(post: Post) -> Handle:
    handle = await start(post)
    await post.promised("stripe:pi_1")
    return handle


async def test_a_delivery_ends_the_wait_of_a_workflow(ledger: Ledger) -> None:
    async with post_on(ledger, shop()) as post:
        stripe = await post.webhook("stripe", THEN)
        order = await waiting(post)
        response = await stripe.deliver(event())
        assert (response.status, told(response)["status"]) == (200, "resolved")
        assert told(response)["promise_id"].startswith(order.id)
        assert (header(response, b"x-operation-id") or b"").startswith(b"op_")
        assert await order.result(timeout=60) == 500
        assert await stripe.verdicts(1) == ["accepted"]


async def test_what_comes_before_anybody_waits_is_kept_for_him(ledger: Ledger) -> None:
    async with post_on(ledger, shop()) as post:
        stripe = await post.webhook("stripe", THEN)
        response = await stripe.deliver(event())
        assert (response.status, told(response)["status"]) == (200, "parked")
        assert await (await start(post)).result(timeout=60) == 500
        again = await stripe.deliver(event())
        assert (again.status, again.body) == (200, response.body)


async def test_every_redelivery_gets_the_first_answer(ledger: Ledger) -> None:
    async with post_on(ledger, shop()) as post:
        stripe = await post.webhook("stripe", THEN)
        order = await waiting(post)
        first = await stripe.deliver(event())
        for attempt in range(1, 6):
            # A provider signs every attempt anew, and may write the event differently.
            again = await stripe.deliver(event(pending_webhooks=attempt))
            assert (again.status, again.body) == (200, first.body)
            assert header(again, b"idempotent-replayed") == b"true"
            assert header(again, b"x-operation-id") == header(first, b"x-operation-id")
        assert await order.result(timeout=60) == 500
        assert await stripe.verdicts(6) == ["accepted"] + ["replayed"] * 5
        assert isinstance(ledger.observe, Tally)
        counts = ledger.observe.counts
        assert (counts["webhook-accepted"], counts["webhook-replayed"]) == (1, 5)


async def test_of_twenty_at_once_one_resolves(ledger: Ledger) -> None:
    async with post_on(ledger, shop()) as post:
        stripe = await post.webhook("stripe", THEN)
        order = await waiting(post)
        responses = await asyncio.gather(*(stripe.deliver(event()) for _ in range(20)))
        assert {each.status for each in responses} <= {200, 503}
        busy = [each for each in responses if each.status == 503]
        assert all(header(each, b"retry-after") for each in busy)
        assert (await stripe.deliver(event())).status == 200
        assert await order.result(timeout=60) == 500
        assert (await stripe.verdicts(21)).count("accepted") == 1


async def test_what_comes_too_late_is_heard_and_ignored(ledger: Ledger) -> None:
    """Neither a failure that the provider would repeat for days, nor one that ends the webhook."""
    async with post_on(ledger, shop()) as post:
        stripe = await post.webhook("stripe", THEN)
        await post.app.engine.create_promise(TENANT, "payment", key="stripe:pi_8", timeout=0.001)
        late = await post.app.engine.wait_promise(TENANT, ByKey("stripe:pi_8"), 60)
        assert late.state is PromiseState.TIMED_OUT
        response = await stripe.deliver(event(payment="pi_8"))
        assert told(response)["status"] == "ignored"
        assert (response.status, told(response)["reason"]) == (200, "promise-over")
        again = await stripe.deliver(event(payment="pi_8"))
        assert (again.status, again.body) == (200, response.body)
        assert await stripe.verdicts(2) == ["failed", "replayed"]


async def test_another_event_for_the_same_promise_changes_nothing(ledger: Ledger) -> None:
    async with post_on(ledger, shop()) as post:
        stripe = await post.webhook("stripe", THEN)
        order = await waiting(post)
        await stripe.deliver(event())
        other = event("evt_2")
        other["data"]["object"]["amount"] = 7
        response = await stripe.deliver(other)
        assert (response.status, told(response)["status"]) == (200, "resolved-before")
        assert await order.result(timeout=60) == 500


async def test_tenants_resolve_their_own_promises_only(ledger: Ledger) -> None:
    async with post_on(ledger, shop()) as post:
        theirs = await post.webhook("stripe", THEN, tenant="other")
        order = await waiting(post)
        assert told(await theirs.deliver(event()))["status"] == "parked"
        mine: Webhook = await post.webhook("stripe", THEN)
        assert told(await mine.deliver(event()))["status"] == "resolved"
        assert await order.result(timeout=60) == 500
