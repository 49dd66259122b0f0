"""Deliveries that tell of several things: each is done once, and all must be for a 200."""

import asyncio
import json
from typing import Any

import pytest

from oncekey import App, Context, Kind, Ledger, Outcome
from oncekey.webhooks.acting import Answered, ForwardRequest
from oncekey.webhooks.providers.declared import DeclaredProvider, IdentifierAt, SignatureAt
from tests.fixtures.post import TENANT, Post, post_on, told

pytestmark = pytest.mark.anyio

JSON = {"content_type": "application/json"}


def cloud(*names: str) -> list[dict[str, Any]]:
    kind = "com.twilio.messaging.message.delivered"
    return [{"specversion": "1.0", "type": kind, "id": f"EZ{name}"} for name in names]


def office() -> App:
    app = App()

    @app.workflow
    async def note(ctx: Context, event: dict[str, Any]) -> str:
        return str(event["id"])

    return app


async def noted(post: Post) -> list[str]:
    found = []
    for each in await post.started():
        handle = await post.app.handle(each.public_id, tenant=TENANT)
        found.append(await handle.result(timeout=60))
    return sorted(found)


async def test_what_is_old_in_a_batch_is_not_done_again(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        twilio = await post.webhook("twilio", "workflow:note")
        assert (await twilio.deliver(cloud("1", "2"), **JSON)).status == 200
        response = await twilio.deliver(cloud("2", "3"), **JSON)
        assert response.status == 200
        assert {each["identifier"]: each["verdict"] for each in told(response)["items"]} == {
            "EZ2": "replayed", "EZ3": "accepted",
        }  # fmt: skip
        assert await noted(post) == ["EZ1", "EZ2", "EZ3"]


async def test_one_of_one_is_a_batch_too(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        twilio = await post.webhook("twilio", "workflow:note")
        assert (await twilio.deliver(cloud("1"), **JSON)).status == 200
        assert (await twilio.deliver(cloud("1", "1"), **JSON)).status == 200
        assert await noted(post) == ["EZ1"]


async def test_a_large_batch_is_delivered_by_many_at_once(ledger: Ledger) -> None:
    names = [str(number) for number in range(100)]
    async with post_on(ledger, office()) as post:
        twilio = await post.webhook("twilio", "workflow:note")
        await asyncio.gather(*(twilio.deliver(cloud(*names), **JSON) for _ in range(5)))
        response = await twilio.insist(cloud(*names), **JSON)
        assert response.status == 200
        assert await noted(post) == sorted(f"EZ{name}" for name in names)


async def test_a_batch_is_done_when_all_of_it_is(ledger: Ledger) -> None:
    """The first attempt gets one through, a second the other; a third repeats nothing."""
    asked: list[str] = []
    away = {"EZ2"}

    async def behind(request: ForwardRequest) -> Answered:
        name = json.loads(request.body)["id"]
        asked.append(name)
        return Answered(Outcome(Kind.RESPONSE, 503 if name in away else 200), name not in away)

    async with post_on(ledger, forward=behind) as post:
        twilio = await post.webhook("twilio", "forward:/events")
        assert (await twilio.deliver(cloud("1", "2", "3"), **JSON)).status == 503
        away.clear()
        assert (await twilio.deliver(cloud("1", "2", "3"), **JSON)).status == 200
        assert (await twilio.deliver(cloud("1", "2", "3"), **JSON)).status == 200
        assert sorted(asked) == ["EZ1", "EZ2", "EZ2", "EZ3"]


@pytest.mark.parametrize("order", [("1", "2"), ("2", "1")])
async def test_of_a_batch_what_is_to_come_again_counts_more_than_what_failed(
    ledger: Ledger, order: tuple[str, str]
) -> None:
    async def behind(request: ForwardRequest) -> Answered:
        failed = json.loads(request.body)["id"] == "EZ1"
        return Answered(Outcome(Kind.RESPONSE, 422 if failed else 503), failed)

    async with post_on(ledger, forward=behind) as post:
        twilio = await post.webhook("twilio", "forward:/events")
        for _ in range(2):
            assert (await twilio.deliver(cloud(*order), **JSON)).status == 503


async def test_a_batch_with_a_failure_is_a_failure(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        twilio = await post.webhook("twilio", "event:'n' + body.note")
        batch = cloud("1", "2")
        batch[0]["note"] = "1"
        for _ in range(2):
            response = await twilio.deliver(batch, **JSON)
            assert (response.status, told(response)["reason"]) == (500, "condition-invalid")
        assert len(await post.published()) == 1


# -- other providers ---------------------------------------------------------------------------


async def test_standard_webhooks(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        for name in ("standard", "svix"):
            webhook = await post.webhook(name, "workflow:note")
            for _ in range(3):
                prefix = "webhook" if name == "standard" else "svix"
                response = await webhook.deliver({"id": name}, **{f"{prefix}_id": "msg_1"})
                assert response.status == 200
            stale = webhook.signed({"id": name}, age=400)
            assert (await webhook.send(stale)).status == 401
        assert await noted(post) == ["standard", "svix"]


ACME = DeclaredProvider(
    "acme",
    IdentifierAt(header="X-Acme-Delivery"),
    SignatureAt("X-Acme-Signature", prefix="sha256="),
)


async def test_a_provider_that_is_declared(ledger: Ledger) -> None:
    async with post_on(ledger, office(), declared=[ACME]) as post:
        acme = await post.webhook("acme", "workflow:note")
        for name in ("d1", "d1", "d2"):
            response = await acme.deliver({"id": "a"}, x_acme_delivery=name)
            assert response.status == 200
        assert (await acme.deliver({"id": "b"}, x_acme_delivery="d3")).status == 200
        # Its identifier is not signed, so the body of d1 is known again as d2.
        assert await noted(post) == ["a", "b"]
        other = acme.signed({"id": "c"}, secret="another", x_acme_delivery="d4")
        assert (await acme.send(other)).status == 401
    async with post_on(ledger, office()) as post:
        assert await post.receiver.lookup("acme", acme.source.id) is None
