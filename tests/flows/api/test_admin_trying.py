"""Test deliveries that an admin sends: signed here, taken as every other, and acted on once."""

from typing import Any

import pytest

from oncekey.webhooks.providers.registry import providers_of
from oncekey.webhooks.receiver import Receiver
from tests.fixtures.admins import Admin
from tests.fixtures.api_site import ApiSite, Client

pytestmark = pytest.mark.anyio

THEN = 'resolve:"stripe:" + body.data.object.id'


@pytest.fixture
async def admin(site: ApiSite) -> Admin:
    return Admin(await site.admin())


async def webhook(admin: Admin, provider: str = "stripe", then: str = THEN, **more: Any) -> str:
    body = {"provider": provider, "then": then, "tenant": "acme", **more}
    made: str = (await admin.done("POST", "webhooks", body))["id"]
    return made


async def test_a_test_delivery_is_acted_on(admin: Admin, acme: Client) -> None:
    workflow = (await acme.start("order", 7))["id"]
    await acme.promise_of(workflow, "payment")
    place = await webhook(admin)
    body = '{"id": "evt_1", "type": "charge.succeeded", "data": {"object": {"id": "ch_7"}}}'
    tried = await admin.done("POST", f"webhooks/{place}/send", {"body": body})

    assert (tried["verdict"], tried["status"], tried["identifier"]) == ("accepted", 200, "evt_1")
    assert (tried["sent"], tried["items"]) == (body, 1)
    assert (await acme.end_of(workflow))["result"]["type"] == "charge.succeeded"
    log = (await admin.see(f"webhooks/{place}/deliveries"))["deliveries"]
    assert [each["id"] for each in log] == [tried["delivery_id"]]
    assert (await admin.see(f"keys/{tried['operation_id']}"))["key"] == "stripe-evt_1"
    again = await admin.done("POST", f"webhooks/{place}/send", {"body": body})
    assert (again["verdict"], again["operation_id"]) == ("replayed", tried["operation_id"])


@pytest.mark.parametrize("provider", sorted(providers_of()))
async def test_every_provider_can_be_tried(admin: Admin, provider: str) -> None:
    place = await webhook(admin, provider, "workflow:echo")
    tried = await admin.done("POST", f"webhooks/{place}/send")
    assert (tried["verdict"], tried["status"], tried["reason"]) == ("accepted", 200, "started")


async def test_what_has_happened_is_in_the_header_of_github(admin: Admin) -> None:
    place = await webhook(admin, "github", 'event:"github:" + headers["x-github-event"]')
    for kind, topic in (("push", "github:push"), (None, "github:ping")):
        await admin.done("POST", f"webhooks/{place}/send", {"type": kind})
        events = (await admin.see("events", tenant="acme", topic=topic))["events"]
        assert [each["key"] for each in events] == [topic]


@pytest.mark.parametrize("provider", ["square", "twilio"])
async def test_a_url_is_signed_as_the_provider_knows_it(
    site: ApiSite, admin: Admin, provider: str
) -> None:
    means = site.means
    means.reception.receiver = Receiver(
        site.ledger,
        means.sources,
        means.providers,
        site.app.engine,
        None,
        public_url="https://hooks.example.com/",
    )
    place = await webhook(admin, provider, "workflow:echo")
    assert (await admin.done("POST", f"webhooks/{place}/send"))["verdict"] == "accepted"


async def test_where_no_deliveries_are_taken_none_is_tried(site: ApiSite, admin: Admin) -> None:
    place = await webhook(admin)
    site.means.reception.receiver = None
    assert await admin.refused("POST", f"webhooks/{place}/send") == (400, "invalid-input")


async def test_one_key_is_one_delivery(admin: Admin, acme: Client) -> None:
    place = await webhook(admin, then="workflow:echo")
    path = f"webhooks/{place}/send"
    first = await admin.act("POST", path, {"type": "charge.succeeded"}, key="try-1")
    again = await admin.act("POST", path, {"type": "charge.succeeded"}, key="try-1")
    other = await admin.done("POST", path, {"type": "charge.succeeded"}, key="try-2")
    assert again.content == first.content
    assert other["identifier"] != first.json()["identifier"]
    assert "charge.succeeded" in first.json()["sent"]
    assert len((await acme.see("workflows")).json()["workflows"]) == 2
    assert await admin.feed() == [
        ("webhook.create", place),
        ("webhook.send", place),
        ("webhook.send", place),
    ]


async def test_what_cannot_be_acted_on_is_told(admin: Admin) -> None:
    place = await webhook(admin, then="workflow:nobody_knows")
    tried = await admin.done("POST", f"webhooks/{place}/send")
    assert (tried["verdict"], tried["status"]) == ("released", 503)
    assert "nobody_knows" in tried["reason"]
    nameless = await admin.done("POST", f"webhooks/{place}/send", {"body": "{}"})
    assert (nameless["verdict"], nameless["operation_id"]) == ("refused", None)
    assert "identifier-missing" in nameless["reason"]


@pytest.mark.parametrize(
    "provider, secret, told",
    [
        ("paypal", "WH-1:-----BEGIN CERTIFICATE-----", "a certificate verifies"),
        ("standard", "whpk_" + "A" * 44, "whsec_ or whsk_"),
        ("adyen", "not hexadecimal", "hexadecimal"),
    ],
)
async def test_a_secret_that_only_verifies_cannot_send(
    admin: Admin, provider: str, secret: str, told: str
) -> None:
    place = await webhook(admin, provider, "workflow:echo", secret=secret)
    answer = await admin.act("POST", f"webhooks/{place}/send")
    assert answer.status_code == 400
    assert told in answer.json()["detail"]
    assert "no delivery of" in answer.json()["detail"]
    assert secret not in answer.text
    assert await admin.feed() == [("webhook.create", place)]


@pytest.mark.parametrize(
    "body",
    [
        {"body": "{}", "type": "x"},
        {"type": ""},
        {"type": "x" * 201},
        {"body": 1},
        {"headers": {}},
    ],
)
async def test_a_test_delivery_that_cannot_be(admin: Admin, body: dict[str, Any]) -> None:
    place = await webhook(admin)
    assert (await admin.refused("POST", f"webhooks/{place}/send", body))[0] == 400
    assert await admin.feed() == [("webhook.create", place)]


async def test_hostile_text_is_only_text(admin: Admin) -> None:
    place = await webhook(admin, then="workflow:echo")
    for text in ("\x00\x01", "<script>", '{"id": "\\u0000\\u202e"}', "[" * 50_000):
        tried = await admin.done("POST", f"webhooks/{place}/send", {"body": text})
        assert tried["verdict"] in {"refused", "accepted"}


async def test_a_webhook_that_is_not_there(admin: Admin) -> None:
    assert await admin.refused("POST", "webhooks/wh_x/send") == (404, "not-found")
    assert await admin.feed() == []
