"""Why something that a provider sent did not arrive, or where it led: deliveries for an admin."""

import json
from typing import Any

import pytest

from oncekey.webhooks.delivery import Delivery
from oncekey.webhooks.receiver import Incoming, Receiver
from tests.fixtures.admins import Admin
from tests.fixtures.api_site import ApiSite, Client

pytestmark = pytest.mark.anyio

RESOLVE = 'resolve:"stripe:" + body.data.object.id'


@pytest.fixture
async def admin(site: ApiSite) -> Admin:
    return Admin(await site.admin())


async def webhook(admin: Admin, then: str = RESOLVE, **more: Any) -> str:
    body = {"provider": "stripe", "then": then, "tenant": "acme", **more}
    made: str = (await admin.done("POST", "webhooks", body))["id"]
    return made


async def deliver(admin: Admin, place: str, event: str, charge: str = "ch_7") -> Any:
    body = json.dumps({"id": event, "type": "paid", "data": {"object": {"id": charge}}})
    return await admin.done("POST", f"webhooks/{place}/send", {"body": body})


async def seen(admin: Admin, tried: Any) -> Any:
    return await admin.see(f"deliveries/{tried['delivery_id']}")


def receiver_of(site: ApiSite) -> Receiver:
    receiver = site.means.reception.receiver
    assert receiver is not None
    return receiver


async def forged(site: ApiSite, place: str, headers: dict[str, str]) -> None:
    """A delivery that nobody signed, or not well."""
    receiver = receiver_of(site)
    source = await receiver.lookup("stripe", place)
    assert source is not None
    lines = tuple((name.encode(), value.encode()) for name, value in headers.items())
    await receiver.receive(source, Incoming("POST", b"/x", b"", lines, "http", b'{"id": "evt_9"}'))
    await receiver.written()


def leads(shape: Any) -> list[tuple[str, str, str]]:
    return [(each["kind"], each["id"], each["state"]) for each in shape["leads_to"]]


# -- where a delivery led ----------------------------------------------------------------------


async def test_a_delivery_leads_to_the_promise_and_who_waits_for_it(
    admin: Admin, acme: Client
) -> None:
    workflow = (await acme.start("order", 7))["id"]
    await acme.promise_of(workflow, "payment")
    tried = await deliver(admin, await webhook(admin), "evt_1")
    await acme.end_of(workflow)
    found = await seen(admin, tried)
    assert leads(found) == [
        ("promise", f"{workflow}:payment", "resolved"),
        ("workflow", workflow, "succeeded"),
    ]
    assert (found["tenant"], found["provider"], found["then"]) == ("acme", "stripe", RESOLVE)
    assert (found["key"]["key"], found["key"]["state"]) == ("stripe-evt_1", "succeeded")
    assert found["advice"] is None
    key = await admin.see(f"keys/{tried['operation_id']}")
    assert key["leads_to"] == found["leads_to"]
    assert [each["id"] for each in key["deliveries"]] == [tried["delivery_id"]]
    shown = await admin.see(f"promises/{workflow}:payment")
    assert shown["settled_by"] == {
        "kind": "delivery",
        "key": f"stripe-evt_1:{tried['operation_id']}",
        "operation_id": tried["operation_id"],
        "id": found["webhook"],
    }


async def test_a_delivery_leads_to_a_workflow_or_an_event(admin: Admin, acme: Client) -> None:
    started = await seen(admin, await deliver(admin, await webhook(admin, "workflow:echo"), "e1"))
    ((kind, workflow, _),) = leads(started)
    assert kind == "workflow"
    start = await admin.see(f"workflows/{workflow}")
    key = await admin.see(f"keys/{start['operation_id']}")
    assert ([each["id"] for each in key["leads_to"]], key["deliveries"]) == ([workflow], [])
    assert (await acme.end_of(workflow))["result"]["id"] == "e1"
    told = await seen(admin, await deliver(admin, await webhook(admin, 'event:"paid"'), "e2"))
    ((kind, event, state),) = leads(told)
    assert (kind, state) == ("event", "published")
    assert "0 waits" in told["advice"] or "Nobody waited" in told["advice"]
    assert (await admin.see(f"events/{event}"))["key"] == "paid"


async def test_one_that_nobody_waits_for_tells_its_key_and_leads_on_later(
    admin: Admin, acme: Client
) -> None:
    tried = await deliver(admin, await webhook(admin), "evt_1", "ch_8")
    found = await seen(admin, tried)
    assert "stripe:ch_8" in found["reason"]
    assert [each["state"] for each in found["leads_to"]] == ["awaited"]
    assert "not the same text" in found["advice"]
    workflow = (await acme.start("order", 8))["id"]
    await acme.end_of(workflow)
    assert leads(await seen(admin, tried)) == [
        ("promise", f"{workflow}:payment", "resolved"),
        ("workflow", workflow, "succeeded"),
    ]
    assert (await seen(admin, tried))["advice"] is None


async def test_a_duplicate_leads_where_the_first_did(admin: Admin, acme: Client) -> None:
    place = await webhook(admin, "workflow:echo")
    first = await seen(admin, await deliver(admin, place, "evt_1"))
    again = await seen(admin, await deliver(admin, place, "evt_1"))
    assert again["verdict"] == "replayed"
    assert [each[:2] for each in leads(again)] == [each[:2] for each in leads(first)]


async def test_a_body_that_came_under_another_name_leads_to_that(admin: Admin) -> None:
    body = {"provider": "github", "then": "workflow:echo", "tenant": "acme"}
    place = (await admin.done("POST", "webhooks", body))["id"]
    first = await admin.done("POST", f"webhooks/{place}/send", {"body": '{"n": 1}'})
    again = await admin.done("POST", f"webhooks/{place}/send", {"body": '{"n": 1}'})
    assert again["verdict"] == "repeated-body"
    found = await seen(admin, again)
    assert found["key"]["operation_id"] == first["operation_id"]
    assert found["leads_to"]
    assert "repeats" in found["advice"]


# -- where it did not --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers, reason, advice",
    [
        ({}, "signature-invalid", "not turned on"),
        ({"stripe-signature": "t=1,v1=00"}, "none of the secrets", "rotate"),
        ({"stripe-signature": "nonsense"}, "signature-invalid", "rotate"),
    ],
)
async def test_a_refusal_tells_what_to_do(
    site: ApiSite, admin: Admin, headers: dict[str, str], reason: str, advice: str
) -> None:
    place = await webhook(admin)
    await forged(site, place, headers)
    (line,) = (await admin.see("deliveries", verdict="refused"))["deliveries"]
    assert reason in line["reason"]
    assert (line["webhook"], line["tenant"], line["provider"]) == (place, "acme", "stripe")
    found = await admin.see(f"deliveries/{line['id']}")
    assert advice in found["advice"]
    assert (found["key"], found["leads_to"]) == (None, [])


async def test_one_that_is_old_tells_of_clocks(site: ApiSite, admin: Admin) -> None:
    place, receiver = await webhook(admin), receiver_of(site)
    source = await receiver.lookup("stripe", place)
    assert source is not None
    secret, *_ = await site.means.sources.secrets(source)
    an_hour_ago = site.ledger.clock.now() / 1000 - 3600
    delivery = Delivery("http://localhost/", (), b'{"id": "evt_9"}')
    signed = site.means.providers["stripe"].sign(delivery, secret, an_hour_ago)
    await forged(site, place, {name.decode(): value.decode() for name, value in signed.headers})
    (line,) = (await admin.see("deliveries"))["deliveries"]
    assert "clock" in (await admin.see(f"deliveries/{line['id']}"))["advice"]


async def test_what_could_not_be_done_yet_and_what_never_can(admin: Admin) -> None:
    later = await seen(admin, await deliver(admin, await webhook(admin, "workflow:no_one"), "e1"))
    assert (later["verdict"], leads(later)) == ("released", [])
    assert "delivers it again" in later["advice"]
    never = await seen(admin, await deliver(admin, await webhook(admin, "event:body.nope"), "e2"))
    assert never["verdict"] == "failed"
    assert "expression" in never["advice"]


# -- lists -------------------------------------------------------------------------------------


async def test_deliveries_are_found_by_everything_that_is_known_of_them(
    site: ApiSite, admin: Admin
) -> None:
    one = await webhook(admin, "workflow:echo")
    two = await webhook(admin, "workflow:echo", tenant="other")
    three = await webhook(admin, "workflow:echo", tenant="other", provider="square")
    first = await deliver(admin, one, "evt_1")
    again = await deliver(admin, one, "evt_1")
    theirs = await deliver(admin, two, "evt_2")
    square = await admin.done("POST", f"webhooks/{three}/send")

    async def ids(**query: Any) -> list[str]:
        return [each["id"] for each in (await admin.see("deliveries", **query))["deliveries"]]

    every = [each["delivery_id"] for each in (square, theirs, again, first)]
    assert await ids() == every
    assert await ids(webhook=one) == every[2:]
    assert await ids(tenant="other") == every[:2]
    assert await ids(tenant="other", provider="stripe") == every[1:2]
    assert await ids(provider="stripe") == await ids(provider="Stripe") == every[1:]
    assert await ids(provider="stripe", webhook=three) == []
    assert await ids(verdict="replayed") == every[2:3]
    assert await ids(operation=first["operation_id"]) == every[2:]
    assert await ids(identifier="evt_2") == every[1:2]
    assert await ids(identifier="evt") == []
    assert await ids(webhook="x") == await ids(tenant="nobody") == []
    page = await admin.see("deliveries", limit=1, provider="stripe")
    assert await ids(before=page["next_before"], provider="stripe") == every[2:]


async def test_deliveries_to_a_deleted_webhook_are_there_still(admin: Admin) -> None:
    place = await webhook(admin, "workflow:echo")
    tried = await deliver(admin, place, "evt_1")
    await admin.done("DELETE", f"webhooks/{place}")
    (line,) = (await admin.see("deliveries"))["deliveries"]
    assert (line["webhook"], line["tenant"], line["provider"]) == (place, None, None)
    found = await seen(admin, tried)
    assert (found["then"], len(found["leads_to"])) == (None, 1)


@pytest.mark.parametrize(
    "query",
    [
        {"verdict": "lost"},
        {"operation": "op_1"},
        {"before": "dl_1"},
        {"tenant": "no slug"},
        {"limit": "0"},
    ],
)
async def test_a_list_that_cannot_be_is_refused(admin: Admin, query: dict[str, str]) -> None:
    answer = await admin.client.get("/api/admin/deliveries", params=query)
    assert answer.status_code == 400, answer.text


@pytest.mark.parametrize("name", ["dl_0000000000000001", "dl_x", "x", "%2e%2e"])
async def test_a_delivery_that_is_not_there(admin: Admin, name: str) -> None:
    assert await admin.refused("GET", f"deliveries/{name}") == (404, "not-found")


async def test_a_service_may_answer_with_anything(admin: Admin, site: ApiSite) -> None:
    """What is stored of a delivery that was forwarded need not be JSON of ours."""
    place = await webhook(admin, "forward:/orders")
    found = await seen(admin, await deliver(admin, place, "evt_1"))
    assert (found["verdict"], found["leads_to"]) == ("released", [])
    assert "route" in found["advice"]
