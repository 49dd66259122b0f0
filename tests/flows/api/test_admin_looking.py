"""Lists of admins that look at some of what there is, and go on; keys that are found at once."""

from typing import Any

import pytest

from oncekey.api.admin import feed
from oncekey.api.admin import keys as admin_keys
from oncekey.stores import windows
from tests.fixtures.admins import ALICE, BOB, Admin, held, settle
from tests.fixtures.api_site import ApiSite

pytestmark = pytest.mark.anyio


@pytest.fixture
async def admin(site: ApiSite) -> Admin:
    return Admin(await site.admin())


@pytest.fixture
def _short_sighted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "_FIRST", 2)
    for module in (admin_keys, feed):
        monkeypatch.setattr(module, "LOOK", 4)


async def pages_of(admin: Admin, path: str, **query: Any) -> list[dict[str, Any]]:
    pages = [await admin.see(path, **query)]
    while pages[-1]["next_before"] is not None:
        pages.append(await admin.see(path, **query, before=pages[-1]["next_before"]))
    return pages


@pytest.mark.usefixtures("_short_sighted")
async def test_a_page_that_is_not_full_says_how_far_back_was_looked(
    site: ApiSite, admin: Admin
) -> None:
    rare = await settle(site.ledger, "rare", namespace=BOB)
    common = [await settle(site.ledger, f"k{number}") for number in range(9)]

    pages = await pages_of(admin, "keys", namespace=BOB)

    assert [[each["key"] for each in page["keys"]] for page in pages] == [[], [], ["rare"]]
    shown = await admin.see(f"keys/{common[5].operation_id}")
    assert pages[0]["looked_back_to"] == shown["created_at"]
    assert pages[0]["next_before"] == common[5].operation_id
    assert pages[-1]["looked_back_to"] is None
    assert (await admin.see("keys", key="rare", before=common[0].operation_id))["keys"][0][
        "operation_id"
    ] == rare.operation_id
    (full,) = [await admin.see("keys", limit=2)]
    assert (len(full["keys"]), full["looked_back_to"]) == (2, None)


@pytest.mark.usefixtures("_short_sighted")
async def test_a_key_of_a_whole_scope_is_found_at_once(site: ApiSite, admin: Admin) -> None:
    await settle(site.ledger, "a")
    await settle(site.ledger, "a", namespace=BOB)
    for number in range(9):
        await settle(site.ledger, f"k{number}")
    whose = {"tenant": "acme", "project": "app", "subject": "user:bob"}
    place = {"endpoint": "POST /orders", "key": "a"}

    async def namespaces(**query: str) -> list[str]:
        page = await admin.see("keys", **query)
        assert (page["next_before"], page["looked_back_to"]) == (None, None)
        return [each["namespace"] for each in page["keys"]]

    assert await namespaces(**whose, **place) == [BOB]
    assert await namespaces(namespace=ALICE, **place) == [ALICE]
    assert await namespaces(**whose, **place, state="succeeded", prefix="a") == [BOB]
    assert await namespaces(**whose, **place, state="failed") == []
    assert await namespaces(**whose, **place, prefix="b") == []
    assert await namespaces(**whose, **place, before="op_0000000000000001") == []
    assert await namespaces(**whose, endpoint="POST /orders", key="b") == []


async def test_the_key_of_a_promise_tells_what_it_stands_for(site: ApiSite, admin: Admin) -> None:
    caller = await site.client()
    started = (await caller.ask("workflows/order/start", {"input": 7}, key="o-7")).json()
    promise = await caller.promise_of(started["id"], "payment")
    (listed,) = (await admin.see("keys", state="promise"))["keys"]
    (running,) = (await admin.see("keys", state="in_progress"))["keys"]

    assert (listed["key"], listed["state"], listed["holder"]) == (promise["key"], "promise", None)
    assert listed["stands_for"] == {"kind": "promise", "id": promise["id"]}
    assert running["stands_for"] == {"kind": "workflow", "id": started["id"]}

    async def standing(each: dict[str, Any]) -> Any:
        return (await admin.see(f"keys/{each['operation_id']}"))["stands_for"]["state"]

    assert await standing(listed) == "pending"
    assert await standing(running) in {"running", "waiting"}
    await caller.ask(f"promises/key:{promise['key']}/resolve", {"value": 1}, key="r-1")
    await caller.end_of(started["id"])
    assert await standing(listed) == "resolved"
    assert await standing(running) == "succeeded"
    (requested,) = (await admin.see("keys", key="r-1"))["keys"]
    assert requested["state"] == "succeeded"
    assert await standing(requested) == "resolved"
    assert [each["key"] for each in (await admin.see("keys", state="promise"))["keys"]] == [
        promise["key"]
    ]


async def test_a_plain_key_stands_for_nothing_else(site: ApiSite, admin: Admin) -> None:
    async with held(site.ledger, "a") as claim:
        assert (await admin.see(f"keys/{claim.operation_id}"))["stands_for"] is None
        assert (await admin.see("keys"))["keys"][0]["stands_for"] is None


@pytest.mark.usefixtures("_short_sighted")
async def test_the_feed_is_searched_for_who_did_what_to_what(site: ApiSite, admin: Admin) -> None:
    first = await settle(site.ledger, "a")
    await admin.done("POST", f"keys/{first.operation_id}/purge")
    for number in range(9):
        await admin.done("PUT", f"retention/class-{number}", {"kept": 60})

    async def found(**query: str) -> list[str]:
        pages = await pages_of(admin, "audit", **query)
        return [each["target"] for page in pages for each in page["entries"]]

    assert await found(action="key.purge") == [first.operation_id]
    assert await found(target="class-3") == ["class-3"]
    assert len(await found(actor=(await admin.see("audit"))["entries"][0]["actor"])) == 10
    assert await found(actor="cli:ann") == []
    assert await found(tenant="acme", action="key.purge") == [first.operation_id]
