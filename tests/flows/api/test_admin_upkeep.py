"""Retention, schedules, stuck work and the feed itself, as an admin looks after them."""

from typing import Any

import pytest

from oncekey import Kind, Operation, Outcome, Proceed, namespace_of
from oncekey.core.schedules import TickTaken
from oncekey.schedules import Scheduler, keeping
from oncekey.schedules.dispatch import ref_of
from oncekey.schedules.schedule import Schedule, StartWorkflow
from oncekey.schedules.timing import timing_of
from tests.fixtures.admins import Admin, settle
from tests.fixtures.api_site import ApiSite, Client, api_site
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.ticks import MINUTE, START

pytestmark = pytest.mark.anyio


@pytest.fixture
async def admin(site: ApiSite) -> Admin:
    return Admin(await site.admin())


# -- retention ---------------------------------------------------------------------------------


async def test_retention_is_changed_for_outcomes_stored_from_then_on(
    site: ApiSite, admin: Admin
) -> None:
    before = await settle(site.ledger, "a")
    changed = await admin.done("PUT", "retention/interactive", {"kept": "48h"}, key="longer")
    after = await settle(site.ledger, "b")

    assert changed == {"class": "interactive", "seconds": 172800.0, "from": "store"}
    assert before.expires_at - (before.completed_at or 0) == 86_400_000
    assert after.expires_at - (after.completed_at or 0) == 172_800_000
    (entry,) = (await admin.see("audit"))["entries"]
    assert (entry["action"], entry["target"]) == ("retention.set", "interactive")
    assert entry["details"] == {
        "seconds": 172800.0,
        "before": 86400.0,
        "idempotency_key": "longer",
    }


async def test_classes_tell_where_they_come_from(admin: Admin) -> None:
    await admin.done("PUT", "retention/weekly", {"kept": 604800})
    found = {each["class"]: each["from"] for each in (await admin.see("retention"))["classes"]}
    assert found == {
        "financial": "default",
        "interactive": "default",
        "nightly": "configuration",
        "webhook": "default",
        "weekly": "store",
    }


@pytest.mark.parametrize(
    "name, kept",
    [("interactive", "0s"), ("interactive", -1), ("interactive", "99999d"), ("Not-A-Class", "1h")],
)
async def test_a_retention_that_cannot_be_is_refused(admin: Admin, name: str, kept: Any) -> None:
    assert (await admin.act("PUT", f"retention/{name}", {"kept": kept})).status_code == 400
    assert await admin.feed() == []


# -- schedules ---------------------------------------------------------------------------------


@pytest.fixture
async def nightly(site: ApiSite) -> str:
    schedules = [
        Schedule(name, timing_of("every 1h"), StartWorkflow("echo", {"n": 1}), tenant="acme")
        for name in ("nightly", "weekly")
    ]
    await site.ledger.arun(keeping.declare(schedules, "code", site.ledger.clock))
    return "nightly"


async def test_a_schedule_is_paused_and_goes_on(admin: Admin, nightly: str) -> None:
    paused = await admin.done("POST", f"schedules/{nightly}/pause", key="stop")
    assert paused["paused"] is True
    assert (await admin.done("POST", f"schedules/{nightly}/pause", key="stop")) == paused
    shown = await admin.see(f"schedules/{nightly}")
    assert (shown["paused"], shown["upcoming"], shown["data"]) == (True, [], {"n": 1})
    assert (await admin.done("POST", f"schedules/{nightly}/resume"))["paused"] is False
    assert len((await admin.see(f"schedules/{nightly}"))["upcoming"]) == 5
    assert await admin.feed() == [("schedule.pause", nightly), ("schedule.resume", nightly)]


async def test_a_schedule_tells_of_its_last_runs(site: ApiSite, admin: Admin, nightly: str) -> None:
    stored = await site.ledger.arun(keeping.find(nightly))
    for tick, outcome in (
        (1_000, Outcome(Kind.VALUE, body=b'"started it"')),
        (2_000, Outcome(Kind.ERROR, 500, body=b"not today")),
    ):
        decision = await site.ledger.abegin(Operation(ref_of(stored, tick)))
        assert isinstance(decision, Proceed)
        await decision.claim.asettle(outcome)
    runs = (await admin.see(f"schedules/{nightly}"))["runs"]
    assert [(each["tick"], each["state"], each["text"]) for each in runs] == [
        ("1970-01-01T00:00:02.000Z", "failed", "not today"),
        ("1970-01-01T00:00:01.000Z", "succeeded", "started it"),
    ]
    key = await admin.see(f"keys/{runs[0]['operation_id']}")
    assert key["key"] == "sched:nightly:2000"
    assert (await admin.see("schedules/weekly"))["runs"] == []


async def test_a_list_tells_which_runs_did_not_end_well(store_url: str) -> None:
    clock = FrozenClock(START)
    async with api_site(store_url, clock=clock, sweep_interval=0) as site:
        admin = Admin(await site.admin())
        acme = await site.client("acme")
        hourly = [
            Schedule(name, timing_of("every 1h"), StartWorkflow(name), tenant="acme")
            for name in ("echo", "refusing", "stuck")
        ]
        scheduler = Scheduler(site.ledger, site.app.engine, hourly)
        await scheduler.declare()
        assert await states(admin) == {"echo": None, "refusing": None, "stuck": None}
        clock.advance(60 * MINUTE)
        for ran in await scheduler.run_once():
            await acme.end_of(ran.text)
        await scheduler.close()
        assert await states(admin) == {"echo": None, "refusing": "failed", "stuck": "paused"}
        assert await late(admin) == set()
        clock.advance(62 * MINUTE)
        assert await late(admin) == {"echo", "refusing", "stuck"}
        await admin.done("POST", "schedules/echo/pause")
        assert await late(admin) == {"refusing", "stuck"}


async def test_a_list_tells_which_ticks_failed(site: ApiSite, admin: Admin, nightly: str) -> None:
    stored = await site.ledger.arun(keeping.find(nightly))
    decision = await site.ledger.abegin(Operation(ref_of(stored, stored.next_at)))
    assert isinstance(decision, Proceed)
    await decision.claim.asettle(Outcome(Kind.ERROR, 500, body=b"not today"))
    next_at, now = stored.next_at + 1, site.ledger.clock.now()
    taken = TickTaken(nightly, stored.next_at, next_at, stored.next_at, now)
    assert await site.ledger.arun(_asked(taken))
    assert await states(admin) == {"nightly": "failed", "weekly": None}
    assert await states(admin, tenant="acme") == {"nightly": "failed", "weekly": None}


def _asked(request: Any) -> Any:
    return (yield request)


async def states(admin: Admin, **query: str) -> dict[str, str | None]:
    found = (await admin.see("schedules", **query))["schedules"]
    return {each["id"]: each["last_state"] for each in found}


async def late(admin: Admin) -> set[str]:
    found = (await admin.see("schedules"))["schedules"]
    return {each["id"] for each in found if each["overdue"]}


async def test_schedules_are_listed_in_order(admin: Admin, nightly: str) -> None:
    first = await admin.see("schedules", limit=1, tenant="acme")
    assert [each["id"] for each in first["schedules"]] == ["nightly"]
    rest = await admin.see("schedules", after=first["next_after"])
    assert [each["id"] for each in rest["schedules"]] == ["weekly"]
    assert (await admin.see("schedules", tenant="other"))["schedules"] == []


async def test_a_schedule_that_is_not_there(admin: Admin) -> None:
    assert await admin.refused("GET", "schedules/x") == (404, "not-found")
    for verb in ("pause", "resume"):
        assert await admin.refused("POST", f"schedules/x/{verb}") == (404, "not-found")
    assert await admin.feed() == []


# -- dead letters ------------------------------------------------------------------------------


async def stuck(client: Client) -> str:
    started = await client.start("stuck")
    assert (await client.end_of(started["id"]))["status"] == "paused"
    found: str = started["id"]
    return found


async def test_failed_and_paused_work_of_all_tenants_is_listed(
    site: ApiSite, admin: Admin, acme: Client
) -> None:
    other = await site.client("other")
    paused = await stuck(acme)
    failed = (await other.start("refusing"))["id"]
    await other.end_of(failed)
    await acme.end_of((await acme.start("echo"))["id"])

    found = (await admin.see("workflows"))["workflows"]
    assert [(each["tenant"], each["id"], each["status"]) for each in found] == [
        ("other", failed, "failed"),
        ("acme", paused, "paused"),
    ]
    only = await admin.see("workflows", tenant="acme")
    assert [each["id"] for each in only["workflows"]] == [paused]
    assert len((await admin.see("workflows", status="succeeded"))["workflows"]) == 1
    first = await admin.see("workflows", limit=1)
    rest = await admin.see("workflows", limit=1, before=first["next_before"])
    assert [each["id"] for each in rest["workflows"]] == [paused]
    assert (await admin.see(f"workflows/{paused}"))["error"]["message"]


async def test_a_double_click_cancels_once(admin: Admin, acme: Client) -> None:
    workflow = await stuck(acme)
    path = f"workflows/{workflow}/cancel"
    first = await admin.act("POST", path, key="stop")
    again = await admin.act("POST", path, key="stop")
    assert first.json()["status"] == "cancelled"
    assert again.content == first.content
    assert await admin.feed(tenant="acme") == [("workflow.cancel", workflow)]
    refused = await admin.refused("POST", f"workflows/{workflow}/resume")
    assert refused == (409, "control-refused")
    assert len(await admin.feed()) == 1


async def test_paused_work_is_resumed_and_forked(admin: Admin, acme: Client) -> None:
    workflow = await stuck(acme)
    resumed = await admin.done("POST", f"workflows/{workflow}/resume")
    assert resumed["workflow_id"] == workflow
    assert (await acme.end_of(workflow))["status"] == "paused"
    path = f"workflows/{workflow}/fork"
    forked = await admin.done("POST", path, {"from_step": 1}, key="fork-1")
    again = await admin.done("POST", path, {"from_step": 1}, key="fork-1")
    assert forked["workflow_id"] != workflow
    assert again == forked
    actions = [action for action, _ in await admin.feed()]
    assert actions == ["workflow.resume", "workflow.fork"]


async def test_an_admins_key_is_apart_from_callers_keys(admin: Admin, acme: Client) -> None:
    """The same word, for two requests about two workflows of one tenant."""
    one, two = await stuck(acme), await stuck(acme)
    assert (await acme.ask(f"workflows/{one}/cancel", key="same")).status_code == 200
    assert (await admin.act("POST", f"workflows/{two}/cancel", key="same")).status_code == 200


@pytest.mark.parametrize("name", ["wf_0000000000000001", "tk_x", "x"])
async def test_work_that_is_not_there(admin: Admin, name: str) -> None:
    assert await admin.refused("GET", f"workflows/{name}") == (404, "not-found")
    for verb in ("cancel", "resume", "fork"):
        assert await admin.refused("POST", f"workflows/{name}/{verb}") == (404, "not-found")
    assert await admin.feed() == []


async def test_promises_of_all_tenants_are_listed(
    site: ApiSite, admin: Admin, acme: Client
) -> None:
    other = await site.client("other")
    await acme.ask("promises", {"name": "p", "key": "k"})
    await other.ask("promises", {"name": "q", "key": "k"})
    await acme.ask("promises/key:k/resolve", {"value": 1})

    found = (await admin.see("promises"))["promises"]
    assert [(each["tenant"], each["name"], each["state"]) for each in found] == [
        ("other", "q", "pending"),
        ("acme", "p", "resolved"),
    ]
    pending = (await admin.see("promises", state="pending"))["promises"]
    assert [each["tenant"] for each in pending] == ["other"]
    first = await admin.see("promises", limit=1)
    rest = await admin.see("promises", before=first["next_before"])
    assert [each["name"] for each in rest["promises"]] == ["p"]


# -- the feed ----------------------------------------------------------------------------------


async def test_the_feed_is_paged_and_kept_by_tenant(site: ApiSite, admin: Admin) -> None:
    records = [
        await settle(site.ledger, f"k{number}", namespace=namespace_of(tenant))
        for number, tenant in enumerate(("acme", "other", "acme"))
    ]
    for record in records:
        await admin.done("POST", f"keys/{record.operation_id}/purge")
    targets = [each.operation_id for each in records]
    assert [target for _, target in await admin.feed()] == targets
    assert [target for _, target in await admin.feed(tenant="acme")] == [targets[0], targets[2]]
    first = await admin.see("audit", limit=2)
    rest = await admin.see("audit", before=first["next_before"])
    assert [each["target"] for each in rest["entries"]] == [targets[0]]
    answer = await admin.act("GET", "audit?before=x")
    assert answer.status_code == 400
