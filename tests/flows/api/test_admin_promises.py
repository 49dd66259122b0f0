"""Promises and events of all tenants as an admin sees them, settles them and publishes them."""

from typing import Any
from urllib.parse import quote

import pytest

from tests.fixtures.admins import Admin
from tests.fixtures.api_site import ApiSite, Client

pytestmark = pytest.mark.anyio

HOSTILE = 'a/b?c#d%2f"<script>…/resolve'


@pytest.fixture
async def admin(site: ApiSite) -> Admin:
    return Admin(await site.admin())


def at(promise_id: str, verb: str = "") -> str:
    return f"promises/{quote(promise_id, safe='')}{verb}"


async def waiting(client: Client) -> str:
    workflow = (await client.start("order", 7))["id"]
    await client.promise_of(workflow, "payment")
    return f"{workflow}:payment"


# -- promises ----------------------------------------------------------------------------------


async def test_a_promise_tells_who_waits_and_who_settled_it(admin: Admin, acme: Client) -> None:
    promise = await waiting(acme)
    shown = await admin.see(at(promise))
    workflow = promise.partition(":")[0]
    assert (shown["waiter"]["id"], shown["waiter"]["name"]) == (workflow, "order")
    assert (shown["state"], shown["settled_by"], shown["tenant"]) == ("pending", None, "acme")
    assert (await admin.see(f"keys/{shown['operation_id']}"))["key"] == "stripe:ch_7"
    await acme.ask("promises/key:stripe:ch_7/resolve", {"value": 1}, key="paid-1")
    shown = await admin.see(at(promise))
    assert (shown["value"], shown["whole"]) == (1, True)
    by = shown["settled_by"]
    assert (by["kind"], by["key"], by["id"]) == ("request", "paid-1", None)
    assert (await admin.see(f"keys/{by['operation_id']}"))["key"] == "paid-1"


async def test_promises_are_found_by_their_key(site: ApiSite, admin: Admin, acme: Client) -> None:
    other = await site.client("other")
    await acme.ask("promises", {"name": "p", "key": "k"})
    await acme.ask("promises", {"name": "r", "key": "k2"})
    await other.ask("promises", {"name": "q", "key": "k"})

    async def names(**query: Any) -> list[str]:
        return [each["name"] for each in (await admin.see("promises", **query))["promises"]]

    assert await names(key="k") == ["q", "p"]
    assert await names(key="k", tenant="acme") == ["p"]
    assert await names(key="k", tenant="acme", state="resolved") == []
    assert await names(tenant="acme") == ["r", "p"]
    assert await names(key="none") == []


async def test_an_admin_resolves_once_and_the_workflow_goes_on(
    site: ApiSite, admin: Admin, acme: Client
) -> None:
    promise = await waiting(acme)
    first = await admin.act("POST", at(promise, "/resolve"), {"value": {"paid": True}}, key="r-1")
    again = await admin.act("POST", at(promise, "/resolve"), {"value": {"paid": True}}, key="r-1")
    assert first.json()["promise"]["value"] == {"paid": True}
    assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
    assert (await acme.end_of(promise.partition(":")[0]))["result"] == {"paid": True}
    other = await admin.done("POST", at(promise, "/resolve"), {"value": 2})
    assert (other["already_resolved"], other["promise"]["value"]) == (True, {"paid": True})
    (entry,) = (await admin.see("audit", tenant="acme"))["entries"]
    assert (entry["action"], entry["target"]) == ("promise.resolve", promise)
    assert entry["details"]["key"] == "stripe:ch_7"
    by = (await admin.see(at(promise)))["settled_by"]
    assert (by["kind"], f"admin:{by['id']}") == ("admin", entry["actor"])


async def test_an_admin_rejects(admin: Admin, acme: Client) -> None:
    promise = await waiting(acme)
    done = await admin.done("POST", at(promise, "/reject"), {"error": {"message": "no money"}})
    assert done["promise"]["state"] == "rejected"
    ended = await acme.end_of(promise.partition(":")[0])
    assert (ended["status"], ended["error"]["message"]) == ("failed", "no money")
    assert await admin.feed() == [("promise.reject", promise)]
    refused = await admin.done("POST", at(promise, "/resolve"))
    assert refused["already_resolved"] is True


async def test_one_that_is_cancelled_is_over(admin: Admin, acme: Client) -> None:
    promise = await waiting(acme)
    await admin.done("POST", f"workflows/{promise.partition(':')[0]}/cancel")
    assert await admin.refused("POST", at(promise, "/resolve")) == (410, "promise-over")
    assert [action for action, _ in await admin.feed()] == ["workflow.cancel"]


async def test_a_name_may_be_any_text(admin: Admin, acme: Client) -> None:
    made = (await acme.ask("promises", {"name": HOSTILE, "key": HOSTILE, "token": True})).json()
    shown = await admin.client.get(f"/api/admin/{at(made['id'])}")
    assert (shown.json()["name"], shown.json()["waiter"]) == (HOSTILE, None)
    assert made["token"] not in shown.text
    done = await admin.done("POST", at(made["id"], "/resolve"), {"value": HOSTILE})
    assert done["promise"]["value"] == HOSTILE


async def test_a_request_key_that_looks_like_anothers_is_a_request(
    admin: Admin, acme: Client
) -> None:
    """Callers choose their request keys; none makes them an admin or a provider."""
    for number, key in enumerate(
        (
            "admin-ak_0000000000000001-" + "0" * 64,
            "stripe-evt_1:op_0000000000000001",
            "ev_0000000000000001",
        )
    ):
        made = (await acme.ask("promises", {"name": f"p{number}"})).json()["id"]
        body = {"value": 1, "request_id": key}
        assert (await acme.ask(f"promises/id:{made}/resolve", body)).status_code == 200
        by = (await admin.see(at(made)))["settled_by"]
        assert (by["kind"], by["key"]) == ("request", key)


async def test_a_large_value_is_shown_up_to_a_bound(admin: Admin, acme: Client) -> None:
    made = (await acme.ask("promises", {"name": "large"})).json()["id"]
    await admin.done("POST", at(made, "/resolve"), {"value": "x" * 500_000})
    shown = await admin.see(at(made))
    assert (shown["whole"], shown["value"]) == (False, '"' + "x" * ((64 << 10) - 1))


@pytest.mark.parametrize(
    "name",
    ["wf_0000000000000001:x", "pr_0000000000000001:x", "pr_x:y", "x", "wf_0000000000000001", "a:"],
)
async def test_a_promise_that_is_not_there(admin: Admin, acme: Client, name: str) -> None:
    await acme.ask("promises", {"name": "x"})
    assert await admin.refused("GET", at(name)) == (404, "not-found")
    for verb in ("/resolve", "/reject"):
        assert await admin.refused("POST", at(name, verb)) == (404, "not-found")
    assert await admin.feed() == []


# -- events ------------------------------------------------------------------------------------


async def test_events_of_all_tenants_are_listed(site: ApiSite, admin: Admin, acme: Client) -> None:
    other = await site.client("other")
    ids = [
        (await client.ask("events", {"key": key, "data": {"n": 1}})).json()["event_id"]
        for client, key in ((acme, "a"), (other, "a"), (acme, "b"))
    ]

    async def found(**query: Any) -> list[str]:
        return [each["id"] for each in (await admin.see("events", **query))["events"]]

    assert await found() == ids[::-1]
    assert await found(tenant="acme") == [ids[2], ids[0]]
    assert await found(topic="a") == [ids[1], ids[0]]
    assert await found(topic="a", tenant="other") == [ids[1]]
    first = await admin.see("events", limit=1)
    assert await found(before=first["next_before"]) == [ids[1], ids[0]]
    shown = await admin.see(f"events/{ids[1]}")
    assert (shown["tenant"], shown["key"], shown["data"]) == ("other", "a", {"n": 1})
    assert (shown["whole"], shown["matched"]) == (True, True)


async def test_an_admin_publishes_once(site: ApiSite, admin: Admin, acme: Client) -> None:
    workflow = (await acme.start("parcel", 3))["id"]
    await acme.waits(workflow)
    body = {"tenant": "acme", "topic": "parcel:sent", "data": {"number": 3}, "headers": {"h": "1"}}
    first = await admin.act("POST", "events", body, key="sent-1")
    again = await admin.act("POST", "events", body, key="sent-1")
    assert (first.status_code, first.json()["matched"]) == (201, 1)
    assert again.content == first.content
    assert (await acme.end_of(workflow))["result"] == {"number": 3}
    assert len((await admin.see("events"))["events"]) == 1
    (entry,) = (await admin.see("audit", tenant="acme"))["entries"]
    assert (entry["action"], entry["target"]) == ("event.publish", first.json()["event_id"])
    assert (entry["details"]["topic"], entry["details"]["matched"]) == ("parcel:sent", 1)
    (step,) = (await admin.see(f"workflows/{workflow}/journal"))["steps"]
    assert step["settled_by"] == first.json()["event_id"]


@pytest.mark.parametrize(
    "body, status",
    [
        ({"tenant": "no slug", "topic": "a"}, 400),
        ({"tenant": "acme", "topic": ""}, 400),
        ({"tenant": "acme", "topic": "a\x00"}, 400),
        ({"tenant": "acme"}, 400),
        ({"topic": "a"}, 400),
        ({"tenant": "acme", "topic": "a", "data": "x" * (300 << 10)}, 413),
    ],
)
async def test_an_event_that_cannot_be(admin: Admin, body: dict[str, Any], status: int) -> None:
    assert (await admin.act("POST", "events", body)).status_code == status
    assert (await admin.see("events"))["events"] == []
    assert await admin.feed() == []


@pytest.mark.parametrize("name", ["ev_0000000000000001", "ev_x", "x"])
async def test_an_event_that_is_not_there(admin: Admin, acme: Client, name: str) -> None:
    await acme.ask("events", {"key": "a"})
    assert await admin.refused("GET", f"events/{name}") == (404, "not-found")
    assert await admin.refused("GET", "events?before=x") == (400, "invalid-input")
