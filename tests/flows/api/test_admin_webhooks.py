"""Webhooks and API keys as an admin makes them: once, with a secret that is told once."""

from typing import Any

import pytest

from oncekey.core.callers import Callers
from oncekey.core.ports import Query
from oncekey.webhooks.sources import Sources
from tests.fixtures.admins import Admin
from tests.fixtures.api_site import ApiSite, Client

pytestmark = pytest.mark.anyio

STRIPE = {
    "provider": "stripe",
    "then": 'resolve:"stripe:" + body.data.object.id',
    "tenant": "acme",
    "label": "the shop",
}


@pytest.fixture
async def admin(site: ApiSite) -> Admin:
    return Admin(await site.admin())


async def secrets_of(site: ApiSite, webhook_id: str) -> tuple[str, ...]:
    """As another process sees them."""
    sources = Sources(site.ledger, site.means.sources._keeper)
    source = await sources.find(webhook_id)
    assert source is not None
    return await sources.secrets(source)


def kept(site: ApiSite) -> bytes:
    """Every answer that the ledger keeps."""
    found = site.ledger.list(Query(limit=1000))
    return b"".join(each.record.outcome.body for each in found if each.record.outcome)


# -- webhooks ----------------------------------------------------------------------------------


async def test_a_webhook_is_made_with_a_secret_that_is_told_once(
    site: ApiSite, admin: Admin
) -> None:
    answer = await admin.act("POST", "webhooks", STRIPE, key="make-1")
    made = answer.json()
    again = await admin.act("POST", "webhooks", STRIPE, key="make-1")

    assert answer.status_code == again.status_code == 201
    assert answer.headers["location"] == f"/api/admin/webhooks/{made['id']}"
    assert made["path"] == f"/api/v1/webhooks/stripe/{made['id']}"
    assert made["secret"].startswith("whsec_")
    assert again.headers["idempotent-replayed"] == "true"
    assert again.json() == {**made, "secret": None}
    assert await secrets_of(site, made["id"]) == (made["secret"],)
    assert made["secret"].encode() not in kept(site)
    assert await admin.feed() == [("webhook.create", made["id"])]
    assert made["secret"] not in str(await admin.see("audit"))
    assert [each["id"] for each in (await admin.see("webhooks"))["webhooks"]] == [made["id"]]


async def test_a_secret_that_is_given_is_not_told(site: ApiSite, admin: Admin) -> None:
    made = await admin.done("POST", "webhooks", {**STRIPE, "secret": "whsec_given"})
    assert made["secret"] is None
    assert await secrets_of(site, made["id"]) == ("whsec_given",)


async def test_webhooks_are_listed_by_tenant_a_page_at_a_time(admin: Admin) -> None:
    made = [
        (await admin.done("POST", "webhooks", {**STRIPE, "tenant": tenant}))["id"]
        for tenant in ("acme", "other", "acme")
    ]
    first = await admin.see("webhooks", tenant="acme", limit=1)
    assert [each["id"] for each in first["webhooks"]] == [made[2]]
    rest = await admin.see("webhooks", tenant="acme", limit=1, before=first["next_before"])
    assert ([each["id"] for each in rest["webhooks"]], rest["next_before"]) == ([made[0]], None)


async def test_a_secret_is_rotated_while_the_last_one_stays_good(
    site: ApiSite, admin: Admin
) -> None:
    made = await admin.done("POST", "webhooks", STRIPE)
    path = f"webhooks/{made['id']}/rotate"
    rotated = await admin.done("POST", path, {"overlap": "1h"}, key="rotate-1")
    again = await admin.done("POST", path, {"overlap": "1h"}, key="rotate-1")

    assert (rotated["secret"] is None, again["secret"]) == (False, None)
    assert await secrets_of(site, made["id"]) == (rotated["secret"], made["secret"])
    shown = (await admin.see(f"webhooks/{made['id']}"))["secrets"]
    assert [each["until"] is None for each in shown] == [True, False]
    assert rotated["secret"].encode() not in kept(site)
    assert await admin.feed() == [
        ("webhook.create", made["id"]),
        ("webhook.rotate", made["id"]),
    ]


async def test_a_stolen_secret_is_replaced_at_once(site: ApiSite, admin: Admin) -> None:
    made = await admin.done("POST", "webhooks", STRIPE)
    body = {"secret": "whsec_new", "overlap": 0}
    rotated = await admin.done("POST", f"webhooks/{made['id']}/rotate", body)
    assert rotated["secret"] is None
    assert await secrets_of(site, made["id"]) == ("whsec_new",)


async def test_what_follows_a_delivery_is_changed(admin: Admin) -> None:
    made = await admin.done("POST", "webhooks", STRIPE)
    path = f"webhooks/{made['id']}"
    changed = await admin.done("PATCH", path, {"then": "workflow:refund", "repeats": "allow"})
    assert (changed["then"], changed["repeats"]) == ("workflow:refund", "allow")
    assert changed["label"] == "the shop"
    assert (await admin.see(path))["then"] == "workflow:refund"
    (entry, _) = (await admin.see("audit"))["entries"]
    assert entry["details"]["then"] == "workflow:refund"


async def test_a_deleted_webhook_is_gone(admin: Admin) -> None:
    made = await admin.done("POST", "webhooks", STRIPE)
    path = f"webhooks/{made['id']}"
    assert (await admin.done("DELETE", path, key="away"))["id"] == made["id"]
    assert (await admin.done("DELETE", path, key="away"))["id"] == made["id"]
    assert await admin.refused("DELETE", path) == (404, "not-found")
    assert (await admin.see("webhooks"))["webhooks"] == []
    assert [action for action, _ in await admin.feed()] == ["webhook.create", "webhook.delete"]


@pytest.mark.parametrize(
    "change, code, told",
    [
        ({"provider": "strip"}, "invalid-input", "there are: "),
        ({"then": "do:it"}, "invalid-input", "forward:/path"),
        ({"then": 'event:"a\0"'}, "invalid-input", "NUL"),
        ({"then": "event:body."}, "condition-invalid", ""),
        ({"tenant": "no slug"}, "invalid-input", "slug"),
        ({"project": "_platform!"}, "invalid-input", "project"),
        ({"label": "x" * 300}, "invalid-input", "label"),
        ({"repeats": "maybe"}, "invalid-input", "repeats"),
        ({"secret": ""}, "invalid-input", "secret"),
        ({"secrets": "x"}, "invalid-input", "did you mean 'secret'"),
    ],
)
async def test_a_webhook_that_cannot_work_is_refused(
    admin: Admin, change: dict[str, Any], code: str, told: str
) -> None:
    answer = await admin.act("POST", "webhooks", {**STRIPE, **change})
    assert answer.status_code == 400
    assert answer.json()["type"].endswith(f"/{code}")
    assert told in answer.json()["detail"]
    assert (await admin.see("webhooks"))["webhooks"] == []
    assert await admin.feed() == []


@pytest.mark.parametrize(
    "method, verb, body",
    [
        ("POST", "/rotate", {"secret": ""}),
        ("POST", "/rotate", {"secret": "x" * 100_000}),
        ("POST", "/rotate", {"overlap": "soon"}),
        ("POST", "/rotate", {"overlap": -1}),
        ("PATCH", "", {"then": "do:it"}),
        ("PATCH", "", {"then": "event:body."}),
        ("PATCH", "", {"label": "x" * 300}),
        ("PATCH", "", {"provider": "github"}),
    ],
)
async def test_a_change_that_cannot_be_is_neither_made_nor_noted(
    admin: Admin, method: str, verb: str, body: dict[str, Any]
) -> None:
    made = await admin.done("POST", "webhooks", STRIPE)
    before = await admin.see(f"webhooks/{made['id']}")
    answer = await admin.act(method, f"webhooks/{made['id']}{verb}", body)
    assert answer.status_code == 400
    assert await admin.see(f"webhooks/{made['id']}") == before
    assert await admin.feed() == [("webhook.create", made["id"])]


@pytest.mark.parametrize("webhook_id", ["wh_" + "a" * 30, "x", "%2e%2e"])
async def test_a_webhook_that_is_not_there(admin: Admin, webhook_id: str) -> None:
    path = f"webhooks/{webhook_id}"
    for method, place, body in (
        ("GET", path, None),
        ("GET", f"{path}/deliveries", None),
        ("PATCH", path, {"label": "x"}),
        ("DELETE", path, None),
        ("POST", f"{path}/rotate", {}),
    ):
        assert (await admin.act(method, place, body)).status_code == 404, place
    assert await admin.feed() == []


# -- API keys ----------------------------------------------------------------------------------


async def test_an_api_key_is_made_once_and_its_secret_is_told_once(
    site: ApiSite, admin: Admin
) -> None:
    body = {"tenant": "acme", "project": "web", "subject": "user:ann", "expires_in": "90d"}
    made = await admin.done("POST", "apikeys", body, key="make-1")
    again = await admin.done("POST", "apikeys", body, key="make-1")

    assert again == {**made, "secret": None}
    caller = await Callers(site.ledger).identify(made["secret"])
    assert caller is not None
    assert (caller.tenant, caller.project, caller.subject) == ("acme", "web", "user:ann")
    assert made["secret"].encode() not in kept(site)
    assert made["secret"] not in str(await admin.see("audit"))
    assert await admin.feed() == [("apikey.create", made["id"])]
    client = Client(site.api, "acme", made["secret"])
    assert (await client.see("workflows")).status_code == 200


async def test_a_revoked_api_key_is_refused_at_once(site: ApiSite, admin: Admin) -> None:
    made = await admin.done("POST", "apikeys", {"tenant": "acme"})
    client = Client(site.api, "acme", made["secret"])
    assert (await client.see("workflows")).status_code == 200
    revoked = await admin.done("POST", f"apikeys/{made['id']}/revoke", key="out")
    assert revoked["state"] == "revoked"
    assert (await client.see("workflows")).status_code == 401
    assert (await admin.done("POST", f"apikeys/{made['id']}/revoke", key="out")) == revoked
    assert len(await admin.feed()) == 2


async def test_an_admin_makes_another(site: ApiSite, admin: Admin) -> None:
    made = await admin.done("POST", "apikeys", {"role": "admin", "label": "on call"})
    assert made["secret"].startswith("oka_")
    other = Admin(Client(site.api, "operators", made["secret"]))
    await other.done("POST", f"apikeys/{made['id']}/revoke")
    assert (await other.act("GET", "keys")).status_code == 401
    actors = [each["actor"] for each in (await admin.see("audit"))["entries"]]
    assert actors[0] == f"admin:{made['id']}"
    assert actors[1] != actors[0]


async def test_api_keys_are_listed_by_tenant_a_page_at_a_time(admin: Admin) -> None:
    made = [
        (await admin.done("POST", "apikeys", {"tenant": tenant}))["id"]
        for tenant in ("acme", "other", "acme")
    ]
    first = await admin.see("apikeys", tenant="acme", limit=1)
    assert [each["id"] for each in first["api_keys"]] == [made[2]]
    rest = await admin.see("apikeys", tenant="acme", before=first["next_before"])
    assert [each["id"] for each in rest["api_keys"]] == [made[0]]
    assert "secret" not in str(await admin.see("apikeys"))


@pytest.mark.parametrize(
    "body",
    [
        {"tenant": "no slug"},
        {"subject": "robot:1"},
        {"expires_in": "never"},
        {"role": "root"},
        {"role": "admin", "tenant": "acme"},
    ],
)
async def test_an_api_key_that_cannot_be_is_refused(admin: Admin, body: dict[str, str]) -> None:
    assert (await admin.act("POST", "apikeys", body)).status_code == 400
    assert await admin.feed() == []


@pytest.mark.parametrize("key_id", ["ak_0000000000000001", "ak_ffffffffffffffff", "x"])
async def test_an_api_key_that_is_not_there(admin: Admin, key_id: str) -> None:
    assert await admin.refused("POST", f"apikeys/{key_id}/revoke") == (404, "not-found")
    assert await admin.feed() == []
