"""Workflows and tasks of all tenants as an admin finds and reads them."""

import asyncio
from typing import Any

import pytest

from tests.fixtures.admins import Admin
from tests.fixtures.api_site import GATES, ApiSite, Client, turn

pytestmark = pytest.mark.anyio


@pytest.fixture
async def admin(site: ApiSite) -> Admin:
    return Admin(await site.admin())


async def waits_of(admin: Admin, workflow: str, kind: str, name: str) -> Any:
    """What a workflow waits for, once it waits for this."""
    while True:
        found = await admin.see(f"workflows/{workflow}/journal")
        if [(kind, name)] == [(each["kind"], each["name"]) for each in found["waits"]]:
            return found
        await turn()


# -- lists -------------------------------------------------------------------------------------


async def test_work_of_any_status_is_listed(site: ApiSite, admin: Admin, acme: Client) -> None:
    other = await site.client("other")
    waiting = (await acme.start("approval"))["id"]
    ended = (await other.start("echo"))["id"]
    task = (await acme.ask("tasks/double/start", {"input": 2})).json()["id"]
    await acme.waits(waiting)
    await other.end_of(ended)
    await acme.end_of(task)

    async def ids(**query: Any) -> list[str]:
        return [each["id"] for each in (await admin.see("workflows", **query))["workflows"]]

    assert await ids() == []
    assert await ids(status="all") == [task, ended, waiting]
    assert await ids(status="all", sort="task") == [task]
    assert await ids(status="all", sort="workflow", tenant="acme") == [waiting]
    assert await ids(status="all", name="echo") == [ended]
    assert await ids(status="waiting") == [waiting]
    first = await admin.see("workflows", status="all", limit=2)
    assert await ids(status="all", before=first["next_before"]) == [waiting]


async def test_a_list_tells_what_is_waited_for(admin: Admin, acme: Client) -> None:
    order = (await acme.start("order", 1))["id"]
    parcel = (await acme.start("parcel", 2))["id"]
    trying = (await acme.start("trying"))["id"]
    ended = (await acme.start("echo"))["id"]
    for each in (order, parcel, trying):
        await acme.waits(each)
    await acme.end_of(ended)

    rows = (await admin.see("workflows", status="all"))["workflows"]
    waits = {each["id"]: each["waits_for"] for each in rows}
    assert waits[ended] is None
    assert waits[order]["promise_id"] == f"{order}:payment"
    assert (waits[parcel]["kind"], waits[parcel]["topic"]) == ("event", "parcel:sent")
    assert (waits[trying]["kind"], waits[trying]["attempts"]) == ("retry", 1)
    assert "not today" in waits[trying]["trouble"]
    for each, wait in waits.items():
        assert (await admin.see(f"workflows/{each}"))["waits_for"] == wait


async def test_an_event_tells_who_went_on_with_it(
    site: ApiSite, admin: Admin, acme: Client
) -> None:
    mine, other = [(await acme.start("parcel", number))["id"] for number in (1, 2)]
    for each in (mine, other):
        await acme.waits(each)
    body = {"tenant": "acme", "topic": "parcel:sent", "data": {"number": 1}}
    event = (await admin.done("POST", "events", body))["event_id"]
    await acme.end_of(mine)
    woke = (await admin.see(f"events/{event}"))["woke"]
    assert [each["id"] for each in woke] == [mine]


async def test_work_is_found_by_the_key_it_was_started_with(
    site: ApiSite, admin: Admin, acme: Client
) -> None:
    other = await site.client("other")
    mine = (await acme.start("echo", 1, key="order-1"))["id"]
    theirs = (await other.start("echo", 1, key="order-1"))["id"]
    await acme.end_of(mine)

    async def ids(**query: Any) -> list[str]:
        return [each["id"] for each in (await admin.see("workflows", **query))["workflows"]]

    assert await ids(key="order-1", tenant="acme") == [mine]
    assert await ids(key="order-1", tenant="other") == [theirs]
    assert await ids(key="order-1") == [theirs, mine]
    first = await admin.see("workflows", key="order-1", limit=1)
    assert await ids(key="order-1", before=first["next_before"]) == [mine]
    assert await ids(key="order-1", tenant="acme", before=mine) == []
    assert await ids(key="order", tenant="acme") == []
    assert await ids(key="order-1", tenant="acme", status="failed") == []
    assert await ids(key="order-1", tenant="acme", status="all", sort="task") == []
    assert await ids(key="order-1", tenant="acme", name="other") == []
    shown = await admin.see(f"workflows/{mine}")
    assert (await admin.see(f"keys/{shown['operation_id']}"))["key"] == "order-1"


@pytest.mark.parametrize(
    "query",
    [
        {"status": "any"},
        {"sort": "both"},
        {"key": "k", "tenant": "no slug"},
        {"key": "", "tenant": "acme"},
        {"key": "x" * 600, "tenant": "acme"},
        {"before": "x"},
    ],
)
async def test_a_list_that_cannot_be_is_refused(admin: Admin, query: dict[str, str]) -> None:
    answer = await admin.client.get("/api/admin/workflows", params=query)
    assert answer.status_code == 400, answer.text


# -- one ---------------------------------------------------------------------------------------


async def test_one_tells_of_its_key_and_its_forks(admin: Admin, acme: Client) -> None:
    workflow = (await acme.start("steps", 2, key="steps-1"))["id"]
    await acme.end_of(workflow)
    forked = await admin.done("POST", f"workflows/{workflow}/fork", {"from_step": 2})
    shown = await admin.see(f"workflows/{workflow}")
    assert shown["forks"] == [forked["workflow_id"]]
    assert (shown["key"], shown["result"], shown["whole"]) == ("steps-1", 2, True)
    fork = await admin.see(f"workflows/{forked['workflow_id']}")
    assert (fork["forked_from"], fork["forked_at"]) == (workflow, 2)
    assert (fork["operation_id"], fork["forks"]) == (None, [])


async def test_one_that_runs_tells_of_its_process(admin: Admin, acme: Client) -> None:
    gate = GATES["here"] = asyncio.Event()
    workflow = (await acme.start("busy", "here"))["id"]
    try:
        while (shown := await admin.see(f"workflows/{workflow}"))["status"] == "ready":
            await turn()
        assert (shown["status"], shown["holder"]) == ("running", "alive")
    finally:
        gate.set()
    await acme.end_of(workflow)
    assert (await admin.see(f"workflows/{workflow}"))["holder"] is None


async def test_large_values_are_shown_up_to_a_bound(admin: Admin, acme: Client) -> None:
    large = "ü" * 200_000
    workflow = (await acme.start("echo", large))["id"]
    await acme.end_of(workflow)
    shown = await admin.see(f"workflows/{workflow}")
    assert shown["whole"] is False
    assert shown["input"] == shown["result"] == '"' + large[: (64 << 10) // 2 - 1]
    listed = (await admin.see("workflows", status="all"))["workflows"]
    assert listed[0]["whole"] is False


# -- the timeline ------------------------------------------------------------------------------


async def test_a_timeline_has_every_kind_of_step(admin: Admin, acme: Client) -> None:
    workflow = (await acme.start("family", 21))["id"]
    found = await waits_of(admin, workflow, "event", "family:sent")
    (wait,) = found["waits"]
    assert (wait["topic"], wait["condition"], wait["promise_id"]) == ("family:sent", None, None)
    event = (await acme.ask("events", {"key": "family:sent", "data": {"n": 1}})).json()
    found = await waits_of(admin, workflow, "promise", "news")
    (wait,) = found["waits"]
    assert (wait["promise_id"], wait["key"]) == (f"{workflow}:news", "news:21")
    await acme.ask("promises/key:news:21/resolve", {"value": "good"}, key="told-1")
    found = await waits_of(admin, workflow, "sleep", "sleep")
    assert found["waits"][0]["due_at"] > found["waits"][0]["since"]

    steps = found["steps"]
    assert [(each["from_step"], each["kind"], each["name"]) for each in steps] == [
        (1, "sleep", "sleep"),
        (2, "call", "double"),
        (3, "start", "echo"),
        (4, "event", "family:sent"),
        (5, "promise", "news"),
    ]
    assert len({each["seq"] for each in steps}) == 5
    _, called, started, sent, told = steps
    assert (called["value"], called["called"][:3]) == ("42", "tk_")
    assert (await admin.see(f"workflows/{called['called']}"))["name"] == "double"
    assert (await admin.see(f"workflows/{started['called']}"))["input"] == 42
    assert sent["settled_by"] == event["event_id"]
    assert (told["promise_id"], told["key"]) == (f"{workflow}:news", "news:21")
    assert (told["settled_by"], told["value"], told["whole"]) == ("told-1", '"good"', True)
    assert all(each["duration_ms"] >= 0 and not each["failed"] for each in steps)


async def test_every_step_of_a_timeline_can_be_forked_from(admin: Admin, acme: Client) -> None:
    workflow = (await acme.start("steps", 3))["id"]
    await acme.end_of(workflow)
    steps = (await admin.see(f"workflows/{workflow}/journal"))["steps"]
    for each in steps:
        path, body = f"workflows/{workflow}/fork", {"from_step": each["from_step"]}
        forked = (await admin.done("POST", path, body))["workflow_id"]
        await acme.end_of(forked)
        again = (await admin.see(f"workflows/{forked}/journal"))["steps"]
        kept = [step["at"] for step in steps[: each["from_step"] - 1]]
        assert [step["at"] for step in again][: len(kept)] == kept
        assert len(again) == 3


async def test_a_long_journal_comes_in_pages(admin: Admin, acme: Client) -> None:
    workflow = (await acme.start("steps", 5))["id"]
    await acme.end_of(workflow)
    path = f"workflows/{workflow}/journal"
    first = await admin.see(path, limit=2)
    second = await admin.see(path, limit=2, after=first["next_after"])
    third = await admin.see(path, limit=2, after=second["next_after"])
    assert third["next_after"] is None
    names = [each["name"] for page in (first, second, third) for each in page["steps"]]
    assert names == [f"step-{number}" for number in range(5)]
    beyond = await admin.see(path, after=99)
    assert (beyond["steps"], beyond["next_after"], beyond["waits"]) == ([], None, [])
    assert await admin.refused("GET", f"{path}?after=x") == (400, "invalid-input")


async def test_a_call_and_a_retry_are_waited_for(admin: Admin, acme: Client) -> None:
    calling = (await acme.start("caller", "x"))["id"]
    (wait,) = (await waits_of(admin, calling, "call", "approval"))["waits"]
    called = await admin.see(f"workflows/{wait['target']}")
    assert (called["name"], called["called_by"]) == ("approval", calling)
    assert (await admin.see(f"workflows/{calling}"))["called_by"] is None
    trying = (await acme.start("trying"))["id"]
    (wait,) = (await waits_of(admin, trying, "retry", "explode"))["waits"]
    assert wait["attempts"] == 1
    assert "not today" in wait["trouble"]


async def test_a_failed_step_tells_why_and_a_task_has_no_steps(admin: Admin, acme: Client) -> None:
    task = (await acme.ask("tasks/double/start", {"input": 2})).json()["id"]
    await acme.end_of(task)
    found = await admin.see(f"workflows/{task}/journal")
    assert (found["steps"], found["waits"]) == ([], [])


@pytest.mark.parametrize("name", ["wf_0000000000000001", "tk_x", "x", "%2e%2e"])
async def test_a_timeline_of_nothing(admin: Admin, name: str) -> None:
    assert await admin.refused("GET", f"workflows/{name}/journal") == (404, "not-found")


# -- who asks ----------------------------------------------------------------------------------


async def test_an_admin_is_told_who_it_is(site: ApiSite) -> None:
    admin = Admin(await site.admin(label="on call", expires_in=3600.0))
    told = await admin.see("whoami")
    assert (told["role"], told["label"], told["state"]) == ("admin", "on call", "good")
    assert told["expires_at"] is not None
    assert told["id"] in [each["id"] for each in (await admin.see("apikeys"))["api_keys"]]
