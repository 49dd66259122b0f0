"""What follows a delivery: an event, a workflow. Once, until its key is purged; and never half."""

import asyncio
from typing import Any

import pytest

from oncekey import App, Context, Ledger, Query
from tests.fixtures.post import TENANT, Post, header, post_on, told

pytestmark = pytest.mark.anyio


def event(identifier: str = "evt_1", **more: Any) -> dict[str, Any]:
    return {"id": identifier, "type": "invoice.paid", **more}


def office() -> App:
    app = App()

    @app.workflow
    async def fulfil(ctx: Context, order: dict[str, Any]) -> str:
        return str(order["id"])

    @app.workflow
    async def tell(ctx: Context) -> Any:
        return await ctx.event("stripe.invoice.paid", where="headers['x-kind'] == 'live'")

    @app.workflow
    async def count(ctx: Context, number: int) -> int:
        return number

    return app


async def finished(post: Post) -> list[Any]:
    """What everything that was started came to."""
    ended = []
    for each in await post.started():
        handle = await post.app.handle(each.public_id, tenant=TENANT)
        ended.append(await handle.result(timeout=60))
    return ended


async def test_a_workflow_is_started_once(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        stripe = await post.webhook("stripe", "workflow:fulfil")
        responses = await asyncio.gather(*(stripe.deliver(event()) for _ in range(20)))
        assert {each.status for each in responses} <= {200, 503}
        response = await stripe.deliver(event(pending_webhooks=2))
        assert (response.status, told(response)["status"]) == (200, "started")
        (execution,) = await post.started()
        assert told(response)["workflow_id"] == execution.public_id
        assert await finished(post) == ["evt_1"]


async def test_its_key_says_where_it_comes_from_and_is_not_shared(ledger: Ledger) -> None:
    """Two projects may have webhooks for one account, which get the same events."""
    async with post_on(ledger, office()) as post:
        one = await post.webhook("stripe", "workflow:fulfil", project="one")
        other = await post.webhook("stripe", "workflow:fulfil", project="other")
        third = await post.webhook("stripe", "workflow:fulfil", project="other")
        for webhook in (one, other, third):
            assert (await webhook.deliver(event())).status == 200
        keys = {each.key for each in await post.started()}
        assert len(keys) == 3
        assert all(key is not None and key.startswith("stripe-evt_1:op_") for key in keys)


async def test_an_event_is_published_once(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        stripe = await post.webhook("stripe", 'event:"stripe." + body.type')
        handle = await post.app.start("tell", tenant=TENANT)
        await post.waiting(handle)
        for _ in range(3):
            response = await stripe.deliver(event(), x_kind="live", x_api_key="hidden")
            assert (response.status, told(response)["status"]) == (200, "published")
            assert told(response)["matched"] == 1
        (published,) = await post.published()
        assert (published.topic, published.headers) == ("stripe.invoice.paid", b'{"x-kind":"live"}')
        assert await handle.result(timeout=60) == event()


async def test_what_was_purged_runs_again(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        start = await post.webhook("stripe", "workflow:fulfil")
        publish = await post.webhook("stripe", "event:'paid'")
        for webhook in (start, publish):
            first = await webhook.deliver(event())
            assert (await webhook.deliver(event())).body == first.body
            assert await webhook.purge("evt_1")
            again = await webhook.deliver(event())
            assert again.status == 200
            assert header(again, b"idempotent-replayed") is None
            assert header(again, b"x-operation-id") != header(first, b"x-operation-id")
        assert await finished(post) == ["evt_1", "evt_1"]
        assert len(await post.published()) == 2


# -- what cannot be done -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "then, body, reason",
    [
        ("resolve:body.gone", event(), "condition-invalid"),
        ("resolve:body.number", event(number=1), "condition-invalid"),
        ("event:body.long", event(long="x" * 300), "invalid-input"),
        ("event:body.id", event(long="x" * 300_000), "payload-too-large"),
        ("workflow:fulfil", event(long="x" * (1 << 20)), "payload-too-large"),
        ("workflow:count", event(), "invalid-input"),
        ("resolve:body.promise", event(promise="a\u0007b"), "idempotency-key-invalid"),
        ("resolve:body.promise", event(promise=""), "idempotency-key-invalid"),
    ],
)
async def test_a_failure_for_good_is_told_again_until_it_is_purged(
    ledger: Ledger, then: str, body: dict[str, Any], reason: str
) -> None:
    async with post_on(ledger, office()) as post:
        stripe = await post.webhook("stripe", then)
        first = await stripe.deliver(body)
        assert (first.status, told(first)["reason"]) == (500, reason)
        assert told(first)["type"].endswith("/delivery-failed")
        again = await stripe.deliver(body)
        assert (again.status, again.body) == (500, first.body)
        assert await stripe.verdicts(2) == ["failed", "replayed"]
        assert (await post.started(), await post.published()) == ([], [])

        await post.sources.change(stripe.source.id, then=_harmless(stripe.source.then))
        assert (await stripe.deliver(body)).status == 500
        assert await stripe.purge("evt_1")
        assert (await stripe.deliver({"id": "evt_1"})).status == 200


def _harmless(then: Any) -> Any:
    return then._replace(name="fulfil") if hasattr(then, "name") else then._replace(key="'fine'")


async def test_a_workflow_nobody_runs_yet_is_started_when_somebody_does(ledger: Ledger) -> None:
    async with post_on(ledger) as post:
        stripe = await post.webhook("stripe", "workflow:fulfil")
        for _ in range(2):
            response = await stripe.deliver(event())
            assert (response.status, told(response)["reason"]) == (503, "name-unknown")
            assert header(response, b"retry-after")
        # Nothing is kept of what did not happen.
        assert ledger.list(Query(prefix="stripe-")) == []
        assert await stripe.verdicts(2) == ["released", "released"]
        webhook_id, secret = stripe.source.id, stripe.secret
    async with post_on(ledger, office()) as post:
        stripe = await post.known(webhook_id, secret)
        assert (await stripe.deliver(event())).status == 200
        assert await finished(post) == ["evt_1"]


# -- what is cut off ---------------------------------------------------------------------------


class Cut(BaseException):
    """As a power cut, for this one delivery."""


class Cutting:
    """Cuts at a named point, once."""

    def __init__(self) -> None:
        self.point: str | None = None

    def __call__(self, point: str) -> None:
        if point == self.point:
            self.point = None
            raise Cut


@pytest.fixture
def cutting(ledger: Ledger) -> Cutting:
    made = Cutting()
    ledger.fault = made
    return made


@pytest.mark.parametrize("then", ["workflow:fulfil", "event:'paid'", "resolve:body.id"])
@pytest.mark.parametrize("point", ["webhook-acted", "before-settle"])
async def test_what_was_done_before_a_cut_is_not_done_again(
    ledger: Ledger, cutting: Cutting, then: str, point: str
) -> None:
    async with post_on(ledger, office()) as post:
        stripe = await post.webhook("stripe", then)
        cutting.point = point
        with pytest.raises(Cut):
            await stripe.deliver(event())
        # The next attempt may even be written differently.
        response = await stripe.insist(event(pending_webhooks=1))
        assert response.status == 200
        again = await stripe.deliver(event())
        assert (again.status, again.body) == (200, response.body)
        assert len(await post.started()) + len(await post.published()) <= 1
        if then.startswith("resolve"):
            created = await post.app.engine.create_promise(TENANT, "p", key="evt_1")
            assert created.promise.body == b'{"id": "evt_1", "type": "invoice.paid"}'


async def test_a_delivery_that_is_cancelled_is_done_by_the_next_attempt(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        stripe = await post.webhook("stripe", "workflow:fulfil")
        for turns in range(25):
            task = asyncio.create_task(stripe.deliver(event(f"evt_{turns}")))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert (await stripe.insist(event(f"evt_{turns}"))).status == 200
        assert sorted(await finished(post)) == sorted(f"evt_{turns}" for turns in range(25))
        assert not ledger._held
