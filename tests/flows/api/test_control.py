"""Control and events over HTTP: every row, as a caller sees it."""

import asyncio
from typing import Any

import pytest

from tests.fixtures.api_site import Client

pytestmark = pytest.mark.anyio


async def waiting(client: Client) -> str:
    started = await client.start("approval")
    await client.promise_of(started["id"], "decision")
    found: str = started["id"]
    return found


# -- control -----------------------------------------------------------------------------------


@pytest.mark.parametrize("in_body", [False, True])
async def test_a_workflow_is_cancelled_once(acme: Client, in_body: bool) -> None:
    workflow = await waiting(acme)

    async def cancel() -> Any:
        path = f"workflows/{workflow}/cancel"
        if in_body:
            return await acme.ask(path, {"request_key": "stop"})
        return await acme.ask(path, key="stop")

    first, again = await cancel(), await cancel()

    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == {
        "workflow_id": workflow,
        "status": "cancelled",
        "idempotency_replayed": False,
    }
    assert again.json() == {**first.json(), "idempotency_replayed": True}
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert (await acme.end_of(workflow))["status"] == "cancelled"


async def test_of_many_at_once_with_one_key_one_is_the_first(acme: Client) -> None:
    workflow = await waiting(acme)
    answers = await asyncio.gather(
        *(acme.ask(f"workflows/{workflow}/cancel", key="stop") for _ in range(20))
    )
    done = [each.json() for each in answers if each.status_code == 200]
    assert sum(not each["idempotency_replayed"] for each in done) == 1
    assert {each.status_code for each in answers} <= {200, 409}


async def test_a_key_is_for_one_request(acme: Client) -> None:
    workflow, other = await waiting(acme), await waiting(acme)
    await acme.ask(f"workflows/{workflow}/cancel", key="k")

    for path, body in [
        (f"workflows/{workflow}/resume", {}),
        (f"workflows/{other}/cancel", {}),
        (f"workflows/{workflow}/fork", {"from_step": 1}),
    ]:
        answer = await acme.ask(path, body, key="k")
        assert answer.status_code == 409
        assert answer.json()["type"].endswith("/control-refused")
    assert (await acme.see(f"workflows/{other}")).json()["status"] != "cancelled"


async def test_what_failed_before_is_refused_again(acme: Client) -> None:
    started = await acme.start("echo", 1)
    await acme.end_of(started["id"])

    first = await acme.ask(f"workflows/{started['id']}/resume", key="k")
    again = await acme.ask(f"workflows/{started['id']}/resume", key="k")
    assert (first.status_code, again.status_code) == (409, 409)


async def test_a_fork_does_the_rest_anew(acme: Client) -> None:
    started = await acme.start("steps", 3)
    await acme.end_of(started["id"])
    answer = await acme.ask(f"workflows/{started['id']}/fork", {"from_step": 2}, key="k")
    again = await acme.ask(f"workflows/{started['id']}/fork", {"from_step": 2}, key="k")
    other = await acme.ask(f"workflows/{started['id']}/fork", {"from_step": 3}, key="k")

    fork = answer.json()["workflow_id"]
    assert fork != started["id"]
    assert again.json()["workflow_id"] == fork
    assert other.status_code == 409
    ended = await acme.end_of(fork)
    assert (ended["status"], ended["result"]) == ("succeeded", 3)
    assert ended["forked_from"] == started["id"]


async def test_a_paused_workflow_is_resumed(acme: Client) -> None:
    started = await acme.start("stuck")
    paused = await acme.end_of(started["id"])
    assert paused["status"] == "paused"
    assert "not today" in paused["error"]["message"]

    answer = await acme.ask(f"workflows/{started['id']}/resume", key="k")
    assert answer.status_code == 200
    assert answer.json()["idempotency_replayed"] is False


@pytest.mark.parametrize("action", ["cancel", "resume", "fork"])
async def test_control_needs_a_key(acme: Client, action: str) -> None:
    workflow = await waiting(acme)
    answer = await acme.ask(f"workflows/{workflow}/{action}")
    assert answer.status_code == 400
    assert answer.json()["type"].endswith("/idempotency-key-missing")
    assert "request_key" in answer.json()["detail"]


@pytest.mark.parametrize("key", ["", "  ", "x" * 201, "ä" * 101, 5, [], {}, True])
async def test_a_request_key_has_a_grammar(acme: Client, key: Any) -> None:
    workflow = await waiting(acme)
    answer = await acme.ask(f"workflows/{workflow}/cancel", {"request_key": key})
    assert answer.status_code == 400
    assert answer.json()["type"].endswith("/request-key-invalid")
    assert (await acme.see(f"workflows/{workflow}")).json()["status"] != "cancelled"


async def test_a_request_key_of_two_hundred_bytes_is_fine(acme: Client) -> None:
    workflow = await waiting(acme)
    answer = await acme.ask(f"workflows/{workflow}/cancel", {"request_key": "x" * 200})
    assert answer.status_code == 200


async def test_two_keys_that_differ_are_refused(acme: Client) -> None:
    workflow = await waiting(acme)
    answer = await acme.ask(f"workflows/{workflow}/cancel", {"request_key": "a"}, key="b")
    assert answer.status_code == 400
    assert (await acme.see(f"workflows/{workflow}")).json()["status"] != "cancelled"


@pytest.mark.parametrize("workflow", ["wf_0000000000000001", "nonsense", "tk_0000000000000001"])
async def test_what_does_not_exist_is_not_controlled(acme: Client, workflow: str) -> None:
    answer = await acme.ask(f"workflows/{workflow}/cancel", key="k")
    assert answer.status_code == 404


# -- events ------------------------------------------------------------------------------------


async def test_an_event_wakes_those_it_fits(acme: Client) -> None:
    first, second = await acme.start("parcel", 1), await acme.start("parcel", 2)
    for each in (first, second):
        await acme.waits(each["id"])
    body = {"key": "parcel:sent", "data": {"number": 2}}
    published = await acme.ask("events", body, key="evt_1")
    again = await acme.ask("events", {**body, "idempotency_key": "evt_1"})
    other = await acme.ask("events", {**body, "data": {"number": 1}}, key="evt_1")

    assert published.json()["matched"] == 1
    assert published.json()["event_id"].startswith("ev_")
    assert (published.json()["idempotency_key_used"], published.json()["idempotency_key_new"]) == (
        True,
        True,
    )
    assert again.json()["event_id"] == published.json()["event_id"]
    assert again.json()["idempotency_key_new"] is False
    assert again.headers["idempotent-replayed"] == "true"
    assert other.status_code == 422
    assert (await acme.end_of(second["id"]))["result"] == {"number": 2}
    assert (await acme.see(f"workflows/{first['id']}")).json()["status"] == "waiting"


async def test_an_event_nobody_waits_for_matches_nothing(acme: Client) -> None:
    answer = await acme.ask("events", {"key": "parcel:lost"})
    assert (answer.status_code, answer.json()["matched"]) == (200, 0)
    assert answer.json()["idempotency_key_used"] is False


async def test_recent_events_are_listed(acme: Client) -> None:
    for number in range(3):
        await acme.ask("events", {"key": "a", "data": number, "headers": {"x": "y"}})
    await acme.ask("events", {"key": "b"})

    of_one = (await acme.see("events?key=a")).json()
    assert sorted(each["data"] for each in of_one["events"]) == [0, 1, 2]
    assert (of_one["events"][0]["headers"], of_one["more"]) == ({"x": "y"}, False)
    assert len((await acme.see("events")).json()["events"]) == 4
    few = (await acme.see("events?limit=2")).json()
    assert (len(few["events"]), few["more"]) == (2, True)


async def test_an_event_is_bounded(acme: Client) -> None:
    answer = await acme.ask("events", {"key": "a", "data": "x" * (256 << 10)})
    assert answer.status_code == 413
    assert (await acme.see("events")).json()["events"] == []
