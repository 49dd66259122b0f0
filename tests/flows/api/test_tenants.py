"""Another tenant cannot read, settle, control or even detect anything: the bytes are the same."""

from typing import Any

import httpx
import pytest

from tests.fixtures.api_site import ApiSite, Client

pytestmark = pytest.mark.anyio

UNKNOWN = "0000000000000001"


def seen(answer: httpx.Response) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
    """Everything a caller sees of an answer."""
    return answer.status_code, answer.content, answer.headers.raw


class Things:
    """What acme has, in every state a stranger might ask about."""

    def __init__(self, workflow: str, task: str, alone: str, token: str) -> None:
        self.workflow = workflow
        self.task = task
        self.alone = alone
        self.token = token


@pytest.fixture
async def things(acme: Client) -> Things:
    workflow = (await acme.start("order", 7, key="order-7"))["id"]
    await acme.promise_of(workflow, "payment")
    task = (await acme.ask("tasks/double/start", {"input": 1}, key="task-1")).json()["id"]
    made = (await acme.ask("promises", {"name": "p", "key": "k:1", "token": True})).json()
    await acme.ask("events", {"key": "topic", "data": 1}, key="evt_1")
    return Things(workflow, task, made["id"], made["token"])


@pytest.fixture
async def other(site: ApiSite) -> Client:
    return await site.client("other")


async def test_reading_is_the_same_as_of_the_unknown(
    things: Things, other: Client, acme: Client
) -> None:
    pairs = [
        (f"workflows/{things.workflow}", f"workflows/wf_{UNKNOWN}"),
        (f"workflows/{things.workflow}/journal", f"workflows/wf_{UNKNOWN}/journal"),
        (f"workflows/{things.workflow}?wait=10ms", f"workflows/wf_{UNKNOWN}?wait=10ms"),
        (f"tasks/{things.task}", f"tasks/tk_{UNKNOWN}"),
        (f"promises/id:{things.workflow}:payment", f"promises/id:wf_{UNKNOWN}:payment"),
        (f"promises/id:{things.alone}", f"promises/id:pr_{UNKNOWN}:p"),
        ("promises/key:stripe:ch_7", "promises/key:nobody"),
        ("promises/key:k:1?wait=10ms", "promises/key:nobody?wait=10ms"),
    ]
    for mine, unknown in pairs:
        assert (await acme.see(mine)).status_code == 200
        hidden, nothing = await other.see(mine), await other.see(unknown)
        assert hidden.status_code == 404
        assert seen(hidden) == seen(nothing)


async def test_settling_and_control_are_the_same_as_of_the_unknown(
    things: Things, other: Client, acme: Client
) -> None:
    value: Any = {"value": 1}
    pairs: list[tuple[str, str, Any, Any]] = [
        ("promises/key:k:1/resolve", "promises/key:nobody/resolve", value, value),
        ("promises/key:k:1/reject", "promises/key:nobody/reject", {}, {}),
        (f"promises/id:{things.alone}/resolve", "promises/id:pr_1:p/resolve", value, value),
        (
            f"/api/v1/workflows/{things.workflow}/promises/payment/complete",
            f"/api/v1/workflows/wf_{UNKNOWN}/promises/payment/complete",
            {"result": 1},
            {"result": 1},
        ),
        (
            "/api/v1/promises/complete",
            "/api/v1/promises/complete",
            {"token": things.token, "result": 1},
            {"token": "ct_" + "A" * 43, "result": 1},
        ),
        (f"workflows/{things.workflow}/cancel", f"workflows/wf_{UNKNOWN}/cancel", {}, {}),
        (f"workflows/{things.workflow}/fork", f"workflows/wf_{UNKNOWN}/fork", {}, {}),
    ]
    for mine, unknown, body, same in pairs:
        hidden = await other.ask(mine, body, key="r-1")
        nothing = await other.ask(unknown, same, key="r-2")
        assert hidden.status_code == 404
        assert seen(hidden) == seen(nothing)
    assert (await acme.see("promises/key:k:1")).json()["state"] == "pending"
    assert (await acme.see(f"workflows/{things.workflow}")).json()["status"] != "cancelled"


async def test_the_path_of_another_tenant_is_not_found(
    things: Things, other: Client, acme: Client
) -> None:
    nothing = seen(await other.see(f"workflows/wf_{UNKNOWN}"))
    for tenant in ("acme", "nobody", "OTHER", "other%20", "t-other"):
        place = f"/api/tenants/{tenant}"
        answers = [
            await other.get(f"{place}/workflows/{things.workflow}"),
            await other.get(f"{place}/workflows"),
            await other.get(f"{place}/promises/key:k:1"),
            await other.get(f"{place}/promises?limit=x"),
            await other.ask(f"{place}/workflows/echo/start"),
            await other.ask(f"{place}/workflows/nothing/start"),
            await other.ask(f"{place}/workflows/{things.workflow}/cancel"),
            await other.ask(f"{place}/promises", {"unknown": 1}),
            await other.ask(f"{place}/promises/key:k:1/resolve", key="not a key"),
            await other.ask(f"{place}/events", {"key": "topic"}),
        ]
        assert {seen(each)[:2] for each in answers} == {nothing[:2]}
        assert all(seen(each) == nothing for each in answers)
    assert len((await acme.see("workflows")).json()["workflows"]) == 1


async def test_lists_show_only_ones_own(things: Things, other: Client) -> None:
    for name in ("workflows", "tasks", "promises", "events"):
        assert (await other.see(name)).json()[name] == []
    assert (await other.see("events?key=topic")).json()["events"] == []


async def test_the_same_keys_of_two_tenants_are_two_things(
    things: Things, other: Client, acme: Client
) -> None:
    started = await other.ask("workflows/order/start", {"input": 8}, key="order-7")
    made = await other.ask("promises", {"name": "p", "key": "k:1"})
    published = await other.ask("events", {"key": "topic", "data": 2}, key="evt_1")
    settled = await other.ask("promises/key:k:1/resolve", {"value": "mine"}, key="r-1")

    assert (started.status_code, made.status_code) == (201, 201)
    assert published.json()["idempotency_key_new"] is True
    assert settled.json()["promise"]["id"] == made.json()["id"]
    assert (await acme.see("promises/key:k:1")).json()["state"] == "pending"


async def test_what_one_tenant_parks_no_other_is_given(other: Client, acme: Client) -> None:
    await other.ask("promises/key:k/resolve", {"value": 1, "park": True})
    made = await acme.ask("promises", {"name": "p", "key": "k"})
    assert made.json()["state"] == "pending"
