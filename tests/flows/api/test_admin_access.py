"""Admins have their own keys: neither theirs nor a caller's is good for the other's endpoints."""

import pytest

from oncekey.api.admin.table import ENDPOINTS as ADMIN
from oncekey.api.app import Api
from oncekey.api.table import ENDPOINTS
from tests.fixtures.api_site import ADMIN_DOCUMENT, ApiSite, Client

pytestmark = pytest.mark.anyio


def path_of(pattern: str) -> str:
    for part in ("{name:path}", "{address:path}", "{id:path}", "{name}", "{id}", "{class}"):
        pattern = pattern.replace(part, "x")
    return pattern.replace("{tenant}", "operators")


async def test_without_the_key_of_an_admin_everything_is_closed(
    site: ApiSite, acme: Client
) -> None:
    nobody = Client(site.api, "acme", None)
    revoked, secret = await site.callers.create("operators", role="admin")
    await site.callers.revoke(revoked.id)
    gone = Client(site.api, "operators", secret)
    for each in ADMIN:
        answers = [
            await client.request(each.method, path_of(each.path)) for client in (nobody, acme, gone)
        ]
        assert {answer.status_code for answer in answers} == {401}, each.path
        assert len({answer.content for answer in answers}) == 1
        assert "oka_" in answers[0].json()["detail"]


async def test_the_key_of_an_admin_is_no_callers(site: ApiSite) -> None:
    admin = await site.admin()
    for each in ENDPOINTS:
        if not each.is_open:
            answer = await admin.request(each.method, path_of(each.path))
            assert answer.status_code == 401, each.path


async def test_where_there_are_no_admins_there_is_nothing(site: ApiSite) -> None:
    api = Api(site.app.engine, site.callers, site.ledger)
    admin = await site.admin()
    alone = Client(api, "operators", admin.secret)
    unknown = await alone.get("/api/nothing")
    for each in ADMIN:
        # Straight to the app: what is not there is in no document.
        answer = await alone.request(each.method, f"{path_of(each.path)}/")
        assert answer.status_code == 404
        assert answer.content == unknown.content
    assert not api.has("/api/admin/keys")
    assert site.api.has("/api/admin/keys")


async def test_admins_alone_can_be_served(site: ApiSite) -> None:
    api = Api(site.app.engine, site.callers, site.ledger, site.api.means, endpoints=())
    assert not api.has("/api/tenants/acme/workflows")
    assert not api.has("/healthz")
    admin = Client(api, "operators", (await site.admin()).secret)
    assert (await admin.get("/api/admin/keys")).status_code == 200


async def test_the_document_is_for_admins(site: ApiSite, acme: Client) -> None:
    admin = await site.admin()
    assert (await admin.get("/api/admin/openapi.json")).json() == ADMIN_DOCUMENT
    public = (await acme.get("/openapi.json")).text
    assert "/api/admin" not in public


async def test_reads_take_no_key_and_every_change_does(site: ApiSite) -> None:
    for each in ADMIN:
        assert (each.policy == "PROHIBITED") is (each.method == "GET"), each.path
        assert (each.rule is None) is (each.method == "GET"), each.path
    admin = await site.admin()
    answer = await admin.get("/api/admin/keys", headers={"idempotency-key": "k"})
    assert answer.status_code == 400


async def test_what_an_admin_did_is_no_callers_with_the_same_name(site: ApiSite) -> None:
    """Both have one tenant, one subject and one Idempotency-Key."""
    same = {"subject": "service:ops", "project": "web"}
    admin = await site.client("acme", role="admin", **same)
    caller = await site.client("acme", **same)
    body = {"label": "made"}
    made = await admin.post("/api/admin/apikeys", json=body, headers={"idempotency-key": "k"})
    assert made.status_code == 201
    promise = await caller.ask("promises", {"name": "p"}, key="k")
    assert promise.status_code == 201
    namespaces = {
        each["namespace"] for each in (await admin.get("/api/admin/keys?prefix=k")).json()["keys"]
    }
    assert namespaces == {"t-acme:_platform:service:ops", "t-acme:web:service:ops"}
