"""A delivery that is forwarded: the answer of the service behind is kept, as providers want it."""

import asyncio
from typing import Any

import pytest

from oncekey import Kind, Ledger, Outcome
from oncekey.core.errors import ConfigurationError, UpstreamTimeout, UpstreamUnreachable
from oncekey.core.model import Takeover
from oncekey.webhooks.acting import Answered, Broken, ForwardRequest
from tests.fixtures.post import TENANT, header, post_on, told

pytestmark = pytest.mark.anyio

EVENT = {"id": "evt_1"}
KIND = (b"content-type", b"text/plain")


class Behind:
    """A service that answers as it is told to, in turn."""

    def __init__(self, *turns: Any) -> None:
        self.turns = list(turns)
        self.asked: list[ForwardRequest] = []

    async def __call__(self, request: ForwardRequest) -> Answered | Broken:
        self.asked.append(request)
        turn = self.turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        return turn if isinstance(turn, Broken) else answered(*turn)


def answered(status: int, body: bytes = b"ok", final: bool | None = None) -> Answered:
    final = status < 500 and status != 409 if final is None else final
    return Answered(Outcome(Kind.RESPONSE, status, (KIND,), body), final)


async def test_its_answer_is_everyones(ledger: Ledger) -> None:
    behind = Behind((201, b"made"))
    async with post_on(ledger, forward=behind) as post:
        stripe = await post.webhook("stripe", "forward:/payments")
        first = await stripe.deliver(EVENT)
        assert (first.status, first.body, header(first, b"content-type")) == (200, b"made", KIND[1])
        again = await stripe.deliver(EVENT)
        assert (again.status, again.body, header(again, b"content-type")) == (200, b"made", KIND[1])
        assert header(again, b"idempotent-replayed") == b"true"
        (asked,) = behind.asked
        assert (asked.path, asked.body) == ("/payments", b'{"id": "evt_1"}')
        assert (asked.tenant, asked.project, asked.subject) == (
            TENANT, "shop", "service:webhook-ingest",
        )  # fmt: skip
        assert asked.key == "t-acme:shop:service:webhook-ingest:stripe-evt_1"
        assert dict(asked.headers)[b"stripe-signature"]


@pytest.mark.parametrize(
    "turn, status",
    [
        (UpstreamUnreachable(), 502),
        ((500, b"broken"), 500),
        ((503, b"away"), 503),
        # A conflict passes, and would make some providers drop the event.
        ((409, b"wait"), 503),
        ((429, b"slow", False), 429),
        (ConfigurationError("no route takes POST /payments"), 503),
    ],
)
async def test_what_did_not_work_is_tried_again(ledger: Ledger, turn: Any, status: int) -> None:
    behind = Behind(turn, (200,))
    async with post_on(ledger, forward=behind) as post:
        stripe = await post.webhook("stripe", "forward:/payments")
        assert (await stripe.deliver(EVENT)).status == status
        assert (await stripe.deliver(EVENT)).status == 200
        assert (await stripe.deliver(EVENT)).status == 200
        assert len(behind.asked) == 2
        assert await stripe.verdicts(3) == ["released", "accepted", "replayed"]


async def test_a_refusal_is_final_until_it_is_purged(ledger: Ledger) -> None:
    behind = Behind((422, b"no"), (200,))
    async with post_on(ledger, forward=behind) as post:
        stripe = await post.webhook("stripe", "forward:/payments")
        for _ in range(3):
            response = await stripe.deliver(EVENT)
            assert (response.status, response.body) == (422, b"no")
        assert await stripe.purge("evt_1")
        assert (await stripe.deliver(EVENT)).status == 200
        assert await stripe.verdicts(4) == ["failed", "replayed", "replayed", "accepted"]


async def test_what_broke_off_is_not_asked_again_until_somebody_has_looked(ledger: Ledger) -> None:
    behind = Behind(UpstreamTimeout(), (200,))
    async with post_on(ledger, forward=behind) as post:
        stripe = await post.webhook("stripe", "forward:/payments")
        first = await stripe.deliver(EVENT)
        assert (first.status, told(first)["type"].rpartition("/")[2]) == (504, "upstream-timeout")
        for _ in range(2):
            again = await stripe.deliver(EVENT)
            assert (again.status, told(again)["type"].rpartition("/")[2]) == (
                500, "outcome-unknown",
            )  # fmt: skip
            assert told(again)["detail"].startswith("The service behind was asked")
        assert len(behind.asked) == 1
        assert await stripe.purge("evt_1")
        assert (await stripe.deliver(EVENT)).status == 200
        assert await stripe.verdicts(4) == ["uncertain", "replayed", "replayed", "accepted"]


async def test_what_broke_off_is_asked_again_where_that_is_the_rule(ledger: Ledger) -> None:
    behind = Behind(Broken(UpstreamTimeout(), again=True), (200,))
    async with post_on(ledger, forward=behind) as post:
        stripe = await post.webhook("stripe", "forward:/payments")
        assert (await stripe.deliver(EVENT)).status == 504
        assert (await stripe.insist(EVENT)).status == 200
        keys = {each.key for each in behind.asked}
        assert keys == {"t-acme:shop:service:webhook-ingest:stripe-evt_1"}


@pytest.mark.parametrize("status, word", [(200, "done"), (400, "failed")])
async def test_an_answer_that_is_too_large_to_keep_is_told_in_a_word(
    ledger: Ledger, status: int, word: str
) -> None:
    async def behind(_: ForwardRequest) -> Answered:
        return Answered(Outcome(Kind.UNKEPT, status), True)

    async with post_on(ledger, forward=behind) as post:
        stripe = await post.webhook("stripe", "forward:/payments")
        for _ in range(2):
            response = await stripe.deliver(EVENT)
            assert (response.status, told(response)) == (status, {"status": word})


async def test_without_a_service_behind_it_is_kept_for_later(ledger: Ledger) -> None:
    async with post_on(ledger) as post:
        stripe = await post.webhook("stripe", "forward:/payments")
        response = await stripe.deliver(EVENT)
        assert (response.status, told(response)["reason"]) == (503, "configuration")
        # Operators learn what is missing; the provider does not.
        assert "/payments" not in response.body.decode()
        (logged,) = await stripe.log(1)
        assert "/payments" in logged.reason


async def test_whatever_breaks_the_provider_delivers_again(ledger: Ledger) -> None:
    behind = Behind(ZeroDivisionError("a bug"), (200,))
    async with post_on(ledger, forward=behind) as post:
        stripe = await post.webhook("stripe", "forward:/payments")
        first = await stripe.deliver(EVENT)
        assert (first.status, "a bug" in first.body.decode()) == (500, False)
        assert (await stripe.insist(EVENT)).status == 200
        assert len(behind.asked) == 2


async def test_a_service_that_is_slow_is_asked_once(ledger: Ledger) -> None:
    begun, go, asked = asyncio.Event(), asyncio.Event(), []

    async def behind(request: ForwardRequest) -> Answered:
        asked.append(request)
        begun.set()
        await go.wait()
        return answered(200)

    async with post_on(ledger, forward=behind) as post:
        stripe = await post.webhook("stripe", "forward:/payments")
        first = asyncio.create_task(stripe.deliver(EVENT))
        await begun.wait()
        busy = await stripe.deliver(EVENT)
        assert (busy.status, header(busy, b"retry-after")) == (503, b"5")
        assert told(busy)["type"].endswith("/delivery-in-flight")
        go.set()
        assert (await first).status == 200
        assert (await stripe.deliver(EVENT)).status == 200
        assert len(asked) == 1


@pytest.mark.parametrize("takeover, status, times", [("rerun", 200, 2), ("refuse", 500, 1)])
@pytest.mark.parametrize("provider", ["stripe", "github"])
async def test_whoever_is_cut_off_in_the_middle_leaves_it_to_the_rule_of_the_route(
    ledger: Ledger, takeover: Takeover, status: int, times: int, provider: str
) -> None:
    begun, asked = asyncio.Event(), []

    async def behind(request: ForwardRequest) -> Answered:
        asked.append(request)
        if len(asked) == 1:
            begun.set()
            await asyncio.Event().wait()
        return answered(200)

    async with post_on(ledger, forward=behind, takeover=takeover) as post:
        webhook = await post.webhook(provider, "forward:/payments")
        lines = {"x_github_delivery": "one"} if provider == "github" else {}
        first = asyncio.create_task(webhook.deliver(EVENT, **lines))
        await begun.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        for _ in range(2):
            assert (await webhook.insist(EVENT, **lines)).status == status
        assert len(asked) == times
