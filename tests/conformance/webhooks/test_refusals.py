"""Deliveries that are not believed: nothing follows them, and only that they came is kept."""

import asyncio
import json
from typing import Any

import pytest

from oncekey import App, Context, Ledger, Query
from oncekey.webhooks.delivery import Delivery
from oncekey.webhooks.providers.registry import providers_of
from oncekey.webhooks.receiver import Receiver
from oncekey.webhooks.secrets import LocalSecrets
from oncekey.webhooks.sources import Sources
from tests.fixtures.post import PUBLIC, Webhook, incoming_of, post_on, told

pytestmark = pytest.mark.anyio

EVENT = {"id": "evt_1", "data": {"object": {"id": "pi_1"}}}


def office() -> App:
    app = App()

    @app.workflow
    async def fulfil(ctx: Context, event: Any) -> None:
        pass

    return app


def forged(webhook: Webhook) -> Delivery:
    return webhook.signed(EVENT, secret="whsec_another")


def stale(webhook: Webhook) -> Delivery:
    return webhook.signed(EVENT, age=302)


def truncated(webhook: Webhook) -> Delivery:
    signed = webhook.signed(EVENT)
    return signed._replace(body=signed.body[:-1])


def reserialised(webhook: Webhook) -> Delivery:
    signed = webhook.signed(EVENT)
    return signed._replace(body=json.dumps(EVENT, indent=1).encode())


def unsigned(webhook: Webhook) -> Delivery:
    return Delivery(webhook.url, (), json.dumps(EVENT).encode())


def twice_signed(webhook: Webhook) -> Delivery:
    signed = webhook.signed(EVENT)
    return signed._replace(headers=(*signed.headers, (b"stripe-signature", b"t=1,v1=00")))


def of_another_webhook(webhook: Webhook) -> Delivery:
    return webhook.signed(EVENT, secret=webhook.provider.new_secret())


@pytest.mark.parametrize(
    "made",
    [forged, stale, truncated, reserialised, unsigned, twice_signed, of_another_webhook],
)
async def test_what_its_provider_did_not_sign_is_refused(ledger: Ledger, made: Any) -> None:
    async with post_on(ledger, office()) as post:
        stripe = await post.webhook("stripe", "workflow:fulfil")
        response = await stripe.send(made(stripe))
        assert response.status == 401
        # Whoever tries learns nothing from the answer.
        assert "missing, wrong or too old" in told(response)["detail"]
        assert await post.started() == []
        assert ledger.list(Query(prefix="stripe-")) == []
        (logged,) = await stripe.log(1)
        assert (logged.verdict, logged.identifier) == ("refused", "")
        # The same event, signed, is a first delivery still.
        assert (await stripe.deliver(EVENT)).status == 200


async def test_an_event_is_not_done_again_under_an_old_signature(ledger: Ledger) -> None:
    """A captured delivery, sent again while it is fresh enough."""
    async with post_on(ledger, office()) as post:
        stripe = await post.webhook("stripe", "workflow:fulfil")
        captured = stripe.signed(EVENT)
        assert [(await stripe.send(captured)).status for _ in range(3)] == [200, 200, 200]
        assert len(await post.started()) == 1


@pytest.mark.parametrize("body", [{}, {"id": ""}, {"id": 5}, {"id": "a\nb"}, [], "text"])
async def test_a_signed_delivery_without_a_name_is_refused(ledger: Ledger, body: Any) -> None:
    async with post_on(ledger, office()) as post:
        stripe = await post.webhook("stripe", "workflow:fulfil")
        response = await stripe.deliver(body)
        assert (response.status, told(response)["type"].rpartition("/")[2]) == (
            400, "identifier-missing",
        )  # fmt: skip
        assert await post.started() == []
        assert await stripe.verdicts(1) == ["refused"]


async def test_a_name_that_makes_no_key_is_refused_by_its_length(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        stripe = await post.webhook("stripe", "workflow:fulfil")
        assert (await stripe.deliver({"id": "e" * 248})).status == 200
        response = await stripe.deliver({"id": "é" * 50})
        assert response.status == 400
        assert told(response)["detail"].endswith("it has 307 characters; 255 are allowed")
        assert len(await post.started()) == 1


async def test_names_that_look_alike_are_different_keys(ledger: Ledger) -> None:
    names = ["a/b", "a%2Fb", "a b", "a+b", "A/B", "t-x:y:z", "é", "e\u0301", "a:b", "a%3Ab"]
    async with post_on(ledger, office()) as post:
        stripe = await post.webhook("stripe", "workflow:fulfil")
        for name in names:
            assert (await stripe.deliver({"id": name})).status == 200
        assert len(await post.started()) == len(names)


async def test_webhooks_are_found_by_id_and_provider_only(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        stripe = await post.webhook("stripe", "workflow:fulfil")
        find = post.receiver.lookup
        assert await find("stripe", stripe.source.id) == stripe.source
        assert await find(None, stripe.source.id) == stripe.source
        for provider, webhook_id in [
            ("github", stripe.source.id),
            ("stripe", "wh_" + "a" * 30),
            ("stripe", stripe.source.id.upper()),
            ("stripe", ""),
            ("stripe", "wh_\0"),
        ]:
            assert await find(provider, webhook_id) is None
        await post.sources.delete(stripe.source.id)
        assert await find("stripe", stripe.source.id) is None
        late = await post.receiver.receive(stripe.source, incoming_of(stripe.signed(EVENT)))
        assert late.status == 404


async def test_two_secrets_are_good_while_one_is_rotated(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        stripe = await post.webhook("stripe", "workflow:fulfil")
        await post.sources.rotate(stripe.source.id, "whsec_new", overlap=3600)
        assert (await stripe.deliver({"id": "evt_1"})).status == 200
        assert (await stripe.deliver({"id": "evt_2"}, secret="whsec_new")).status == 200
        await post.sources.rotate(stripe.source.id, "whsec_newer", overlap=0)
        for secret in (stripe.secret, "whsec_new"):
            assert (await stripe.deliver({"id": "evt_3"}, secret=secret)).status == 401
        assert (await stripe.deliver({"id": "evt_3"}, secret="whsec_newer")).status == 200


async def test_what_cannot_be_verified_here_is_not_called_a_forgery(ledger: Ledger) -> None:
    """The provider is to deliver it again, and its operator sees that it is no fault of its."""
    async with post_on(ledger, office()) as post:
        stripe = await post.webhook("stripe", "workflow:fulfil")
        closed = Sources(ledger, LocalSecrets(lambda: ()))
        here = Receiver(ledger, closed, providers_of(()), post.app.engine, None)
        response = await here.receive(stripe.source, incoming_of(stripe.signed(EVENT)))
        assert response.status == 503
        here.close()
        assert await stripe.verdicts(1) == ["released"]


async def test_a_flood_of_forgeries_is_a_few_lines(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        stripe = await post.webhook("stripe", "workflow:fulfil")
        await asyncio.gather(*(stripe.send(forged(stripe)) for _ in range(300)))
        logged = await stripe.log(300)
        assert len(logged) <= 61
        assert sum(each.times for each in logged) == 300


async def test_the_url_is_the_one_providers_know(ledger: Ledger) -> None:
    """Behind a proxy, the host of a request is not what was signed."""
    async with post_on(ledger, office()) as post:
        twilio = await post.webhook("twilio", "event:'sms'")
        form = b"MessageSid=SM1&MessageStatus=sent"
        signed = twilio.signed(form)
        incoming = incoming_of(signed)
        inner = tuple(
            (name, b"10.0.0.1:8700" if name == b"host" else line) for name, line in incoming.headers
        )
        behind_proxy = incoming._replace(headers=inner, scheme="http")
        response = await post.receiver.receive(twilio.source, behind_proxy)
        assert response.status == 200
        elsewhere = twilio.provider.sign(
            Delivery(twilio.url.replace(PUBLIC, "https://evil.example"), (), form), twilio.secret, 0
        )
        assert (await twilio.send(elsewhere)).status == 401


async def test_of_two_hosts_neither_is_the_one_that_was_signed(ledger: Ledger) -> None:
    """Where nothing is set, the URL is what the request says: in one way only."""
    async with post_on(ledger, office()) as post:
        twilio = await post.webhook("twilio", "event:'sms'")
        incoming = incoming_of(twilio.signed(b"MessageSid=SM1&MessageStatus=sent"))
        here = Receiver(ledger, post.sources, providers_of(()), post.app.engine, None)
        other = (b"host", b"evil.example")
        for headers in ((*incoming.headers, other), (other, *incoming.headers)):
            response = await here.receive(twilio.source, incoming._replace(headers=headers))
            assert response.status == 401
        assert (await here.receive(twilio.source, incoming)).status == 200


async def test_slack_hears_its_challenge_and_nothing_follows(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        slack = await post.webhook("slack", "workflow:fulfil")
        challenge = {"type": "url_verification", "challenge": "3eZbrw1a"}
        response = await slack.deliver(challenge)
        assert (response.status, response.body) == (200, b"3eZbrw1a")
        assert dict(response.headers)[b"content-type"].startswith(b"text/plain")
        assert (await slack.send(slack.signed(challenge, secret="another"))).status == 401
        assert await post.started() == []
