"""Keys as an admin sees them: everybody's, with their answers; and forgotten, so that they run."""

import asyncio
import json

import pytest

from oncekey import Kind, Outcome
from oncekey.webhooks.acting import Answered
from oncekey.webhooks.delivery import Delivery
from oncekey.webhooks.receiver import Incoming, Receiver
from oncekey.webhooks.sources import Source
from oncekey.webhooks.then import parse_then
from oncekey.wire.problem import Response
from tests.fixtures.admins import ALICE, BOB, Admin, held, settle
from tests.fixtures.api_site import ApiSite

pytestmark = pytest.mark.anyio


@pytest.fixture
async def admin(site: ApiSite) -> Admin:
    return Admin(await site.admin())


async def keys(admin: Admin, **query: object) -> list[str]:
    return [each["key"] for each in (await admin.see("keys", **query))["keys"]]


async def test_keys_of_everybody_are_listed_newest_first(site: ApiSite, admin: Admin) -> None:
    await settle(site.ledger, "a", namespace=ALICE)
    await settle(site.ledger, "b", namespace=BOB, endpoint="POST /invoices", status=422)
    async with held(site.ledger, "c", "t-other:_tenant:client:1"):
        assert await keys(admin) == ["c", "b", "a"]
        assert await keys(admin, state="in_progress") == ["c"]
    assert await keys(admin, tenant="acme") == ["b", "a"]
    assert await keys(admin, tenant="acme", project="web") == ["a"]
    assert await keys(admin, tenant="acme", project="web", subject="user:alice") == ["a"]
    assert await keys(admin, namespace=BOB) == ["b"]
    assert await keys(admin, endpoint="POST /invoices") == ["b"]
    assert await keys(admin, state="failed", tenant="acme") == ["b"]
    assert await keys(admin, prefix="a") == ["a"]
    assert await keys(admin, tenant="acm") == []


async def test_a_page_leads_to_the_next(site: ApiSite, admin: Admin) -> None:
    for number in range(45):
        await settle(site.ledger, f"k{number:02}")
    seen, query = [], {"limit": 20}
    while True:
        page = await admin.see("keys", **query)
        seen += [each["key"] for each in page["keys"]]
        if page["next_before"] is None:
            break
        query["before"] = page["next_before"]
    assert seen == [f"k{number:02}" for number in reversed(range(45))]


@pytest.mark.parametrize(
    "query, told",
    [
        ({"project": "web"}, "a project is one of a tenant"),
        ({"tenant": "acme", "subject": "user:a"}, "a subject of a project"),
        ({"namespace": ALICE, "tenant": "acme"}, "says it all"),
        ({"tenant": "not a slug"}, "slug"),
        ({"state": "done"}, "there are"),
        ({"before": "k"}, "next_before"),
        ({"limit": "0"}, "limit"),
        ({"tennant": "acme"}, "did you mean 'tenant'"),
    ],
)
async def test_a_question_that_makes_no_sense_is_told_why(
    admin: Admin, query: dict[str, str], told: str
) -> None:
    answer = await admin.client.get("/api/admin/keys", params=query)
    assert answer.status_code == 400
    assert told in answer.json()["detail"]


async def test_a_key_is_shown_with_its_answer_and_when_what_happened(
    site: ApiSite, admin: Admin
) -> None:
    record = await settle(site.ledger, "a", status=402, body=b'{"no": "money"}')
    shown = await admin.see(f"keys/{record.operation_id}")
    assert (shown["key"], shown["tenant"], shown["state"]) == ("a", "acme", "failed")
    assert (shown["attempts"], shown["request_id"], shown["holder"]) == (1, "req-1", None)
    outcome = shown["outcome"]
    assert (outcome["status"], outcome["body"], outcome["whole"]) == (402, '{"no": "money"}', True)
    assert outcome["headers"] == [["content-type", "application/json"]]
    assert [each["what"] for each in shown["timeline"]] == ["claimed", "failed", "expires"]

    async with held(site.ledger, "b") as claim:
        running = await admin.see(f"keys/{claim.operation_id}")
    assert (running["state"], running["holder"]) == ("in_progress", "alive")
    assert running["outcome"] is None


@pytest.mark.parametrize(
    "body, member, shown",
    [
        (b"x" * 100_000, "body", 65536),
        ("é".encode() * 50_000, "body", 32768),
        (b"x" + "é".encode() * 50_000, "body", 32768),
        (b"\xff" * 100_000, "body_base64", 87384),
    ],
)
async def test_of_a_large_answer_only_the_beginning_is_shown(
    site: ApiSite, admin: Admin, body: bytes, member: str, shown: int
) -> None:
    record = await settle(site.ledger, "a", body=body)
    outcome = (await admin.see(f"keys/{record.operation_id}"))["outcome"]
    assert len(outcome[member]) == shown
    assert (outcome["bytes"], outcome["whole"]) == (len(body), False)


@pytest.mark.parametrize("name", ["op_0000000000000001", "a", "op_x", "%00"])
async def test_what_does_not_exist_is_not_found(admin: Admin, name: str) -> None:
    assert (await admin.client.get(f"/api/admin/keys/{name}")).status_code == 404
    assert (await admin.act("POST", f"keys/{name}/purge")).status_code == 404
    assert await admin.feed() == []


async def test_a_purged_key_runs_again(site: ApiSite, admin: Admin) -> None:
    record = await settle(site.ledger, "a")
    purged = await admin.done("POST", f"keys/{record.operation_id}/purge")
    assert purged == {"operation_id": record.operation_id, "key": "a", "purged": 1}
    assert (await settle(site.ledger, "a")).id != record.id
    (entry,) = (await admin.see("audit"))["entries"]
    assert (entry["action"], entry["target"]) == ("key.purge", record.operation_id)
    assert entry["tenant"] == "acme"
    assert entry["details"]["key"] == "a"
    assert entry["actor"].startswith("admin:ak_")


async def test_a_double_click_purges_once(site: ApiSite, admin: Admin) -> None:
    record = await settle(site.ledger, "a")
    path = f"keys/{record.operation_id}/purge"
    first = await admin.act("POST", path, key="click-1")
    await settle(site.ledger, "a")
    again = await admin.act("POST", path, key="click-1")
    assert again.headers["idempotent-replayed"] == "true"
    assert again.content == first.content
    assert len(await admin.feed()) == 1


async def test_many_clicks_at_once_act_once(site: ApiSite, admin: Admin) -> None:
    record = await settle(site.ledger, "a")
    path = f"keys/{record.operation_id}/purge"
    answers = await asyncio.gather(*(admin.act("POST", path, key="click") for _ in range(10)))
    assert {each.status_code for each in answers} <= {200, 409}
    assert len(await admin.feed()) == 1


async def test_what_is_running_is_purged_by_force_only(site: ApiSite, admin: Admin) -> None:
    async with held(site.ledger, "a") as claim:
        path = f"keys/{claim.operation_id}/purge"
        assert await admin.refused("POST", path) == (409, "request-in-progress")
        assert await admin.feed() == []
        await admin.done("POST", path, {"force": True})
        assert (await settle(site.ledger, "a")).id != claim.id
    assert await admin.feed() == [("key.purge", claim.operation_id)]


async def test_an_outcome_that_is_not_known_is_decided_by_a_purge(
    site: ApiSite, admin: Admin
) -> None:
    async with held(site.ledger, "a") as claim:
        pass
    while (await admin.see(f"keys/{claim.operation_id}"))["holder"] != "lapsed":
        continue
    await admin.done("POST", f"keys/{claim.operation_id}/purge")
    assert (await settle(site.ledger, "a")).id != claim.id


async def test_keys_with_names_from_anywhere_are_noted(site: ApiSite, admin: Admin) -> None:
    record = await settle(site.ledger, "é" * 250, endpoint="POST /" + "ü" * 2000)
    await admin.done("POST", f"keys/{record.operation_id}/purge")
    assert await admin.feed() == [("key.purge", record.operation_id)]


# -- deliveries --------------------------------------------------------------------------------


class Hook:
    """A webhook that forwards to a service which fails for good, until it is mended."""

    def __init__(self, site: ApiSite, source: Source, secret: str) -> None:
        self._site = site
        self._source = source
        self._secret = secret
        self.status = 422
        self.handled = 0
        self._receiver = Receiver(
            site.ledger, site.means.sources, site.means.providers, None, self._forward
        )

    async def _forward(self, _: object) -> object:
        self.handled += 1
        return Answered(Outcome(Kind.RESPONSE, self.status, (), b"{}"), final=True)

    async def deliver(self, name: str) -> Response:
        headers = ((b"x-github-delivery", name.encode()),)
        path = f"/api/v1/webhooks/github/{self._source.id}"
        delivery = Delivery(f"http://edge{path}", headers, json.dumps({"zen": 1}).encode())
        provider, now = self._site.means.providers["github"], self._site.ledger.clock.now() / 1000
        signed = provider.sign(delivery, self._secret, now)
        lines = (*signed.headers, (b"host", b"edge"))
        incoming = Incoming("POST", path.encode(), b"", lines, "http", signed.body)
        return await self._receiver.receive(self._source, incoming)


@pytest.fixture
async def hook(site: ApiSite) -> Hook:
    source = await site.means.sources.create(
        "acme", "web", "github", parse_then("forward:/builds"), secret="s" * 40
    )
    return Hook(site, source, "s" * 40)


async def test_a_delivery_that_is_purged_runs_when_it_is_sent_again(
    site: ApiSite, admin: Admin, hook: Hook
) -> None:
    assert (await hook.deliver("d-1")).status == 422
    hook.status = 200
    assert (await hook.deliver("d-1")).status == 422
    assert hook.handled == 1
    (record,) = (await admin.see("keys", prefix="github-d-1"))["keys"]
    purged = await admin.done("POST", f"keys/{record['operation_id']}/purge")

    assert purged["purged"] == 2
    assert (await hook.deliver("d-1")).status == 200
    assert hook.handled == 2


async def test_a_body_is_forgotten_with_its_delivery(admin: Admin, hook: Hook) -> None:
    """The provider's button may send it under another name."""
    hook.status = 200
    await hook.deliver("d-1")
    await hook.deliver("d-2")
    assert hook.handled == 1
    (record,) = (await admin.see("keys", prefix="github-d-1"))["keys"]
    await admin.done("POST", f"keys/{record['operation_id']}/purge")
    await hook.deliver("d-2")
    assert hook.handled == 2


async def test_bodies_of_other_deliveries_stay(site: ApiSite, admin: Admin, hook: Hook) -> None:
    await settle(site.ledger, "github-d-1", namespace=ALICE, endpoint="POST /api/v1/webhooks/x")
    hook.status = 200
    await hook.deliver("d-1")
    body, delivery = sorted(
        (each["endpoint"], each["operation_id"])
        for each in (await admin.see("keys", tenant="acme", project="web"))["keys"]
        if "wh_" in each["endpoint"]
    )[::-1]
    mine = (await admin.see("keys", namespace=ALICE))["keys"][0]["operation_id"]
    assert (await admin.done("POST", f"keys/{mine}/purge"))["purged"] == 1
    # The record of a body can be purged by itself, and then stands for nothing else.
    assert body[0].endswith("#body")
    assert (await admin.done("POST", f"keys/{body[1]}/purge"))["purged"] == 1
    assert (await admin.see(f"keys/{delivery[1]}"))["state"] == "succeeded"


async def test_every_delivery_tells_its_operation(site: ApiSite, admin: Admin, hook: Hook) -> None:
    await hook.deliver("d-1")
    source = (await admin.see("webhooks"))["webhooks"][0]
    while not (found := (await admin.see(f"webhooks/{source['id']}/deliveries"))["deliveries"]):
        site.means.deliveries.flush()
    assert found[0]["verdict"] == "failed"
    shown = await admin.see(f"keys/{found[0]['operation_id']}")
    assert shown["key"] == "github-d-1"
