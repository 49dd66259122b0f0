"""Promises over HTTP: every row of how they are settled."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.fixtures.api_site import Client

pytestmark = pytest.mark.anyio


async def make(client: Client, **body: Any) -> Any:
    answer = await client.ask("promises", {"name": "payment", **body})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def resolve(
    client: Client, address: str, value: Any = None, *, key: str | None = None, **body: Any
) -> httpx.Response:
    return await client.ask(f"promises/{address}/resolve", {"value": value, **body}, key=key)


def flags(answer: httpx.Response) -> tuple[bool, bool, bool]:
    seen = answer.json()
    return seen["already_resolved"], seen["idempotency_key_used"], seen["idempotency_key_new"]


# -- settled -----------------------------------------------------------------------------------


async def test_a_workflow_goes_on_with_the_value(acme: Client) -> None:
    started = await acme.start("order", 7)
    await acme.promise_of(started["id"], "payment")
    answer = await resolve(acme, "key:stripe:ch_7", {"paid": True}, key="evt_1")

    assert answer.status_code == 200
    assert flags(answer) == (False, True, True)
    assert answer.json()["promise"]["workflow_id"] == started["id"]
    assert answer.json()["resolved_by"] == "evt_1"
    assert "idempotent-replayed" not in answer.headers
    ended = await acme.end_of(started["id"])
    assert (ended["status"], ended["result"]) == ("succeeded", {"paid": True})


@pytest.mark.parametrize(
    "path, member",
    [
        ("promises/id:{id}:decision/resolve", "value"),
        ("promises/id:{id}:decision/resolve", "result"),
        ("/api/v1/workflows/{id}/promises/decision/complete", "result"),
    ],
)
async def test_a_promise_is_settled_by_its_id_or_by_workflow_and_name(
    acme: Client, path: str, member: str
) -> None:
    started = await acme.start("approval")
    await acme.promise_of(started["id"], "decision")
    answer = await acme.ask(path.format(id=started["id"]), {member: "yes"})

    assert answer.status_code == 200
    assert flags(answer) == (False, False, False)
    assert (await acme.end_of(started["id"]))["result"] == "yes"


@pytest.mark.parametrize("member", [None, "request_id", "idempotency_key"])
async def test_the_same_request_key_again_gets_the_first_answer(
    acme: Client, member: str | None
) -> None:
    made = await make(acme)
    sent: dict[str, Any] = {"key": "evt_1"} if member is None else {member: "evt_1"}
    first = await resolve(acme, f"id:{made['id']}", 1, **sent)
    again = await resolve(acme, f"id:{made['id']}", 1, **sent)

    assert flags(first) == (False, True, True)
    assert flags(again)[1:] == (True, False)
    assert again.headers["idempotent-replayed"] == "true"
    assert again.json()["promise"] == first.json()["promise"]


async def test_another_request_key_is_told_who_was_first(acme: Client) -> None:
    made = await make(acme)
    await resolve(acme, f"id:{made['id']}", 1, key="evt_1")
    second = await resolve(acme, f"id:{made['id']}", 2, key="evt_2")

    assert second.status_code == 200
    assert flags(second) == (True, True, True)
    assert second.json()["resolved_by"] == "evt_1"
    assert second.json()["promise"]["value"] == 1


async def test_of_fifty_at_once_one_wins_and_all_see_its_value(acme: Client) -> None:
    started = await acme.start("approval")
    await acme.promise_of(started["id"], "decision")
    address = f"id:{started['id']}:decision"
    answers = await asyncio.gather(
        *(resolve(acme, address, each, key=f"evt_{each}") for each in range(50))
    )

    assert {each.status_code for each in answers} == {200}
    winners = [each for each in answers if not each.json()["already_resolved"]]
    assert len(winners) == 1
    value = winners[0].json()["promise"]["value"]
    assert {each.json()["promise"]["value"] for each in answers} == {value}
    assert {each.json()["resolved_by"] for each in answers} == {f"evt_{value}"}
    assert (await acme.end_of(started["id"]))["result"] == value


async def test_a_request_key_is_for_one_promise(acme: Client) -> None:
    first, second = await make(acme), await make(acme)
    await resolve(acme, f"id:{first['id']}", 1, key="evt_1")
    answer = await resolve(acme, f"id:{second['id']}", 1, key="evt_1")

    assert answer.status_code == 422
    assert answer.json()["type"].endswith("/idempotency-key-reused")


async def test_keys_that_differ_are_refused(acme: Client) -> None:
    made = await make(acme)
    answer = await resolve(acme, f"id:{made['id']}", 1, key="a", request_id="b")
    assert answer.status_code == 400
    same = await resolve(acme, f"id:{made['id']}", 1, key="a", request_id="a")
    assert same.status_code == 200


@pytest.mark.parametrize(
    "body, message",
    [
        ({"error": {"code": "declined", "message": "no"}}, "no"),
        ({"error": "no"}, "no"),
        ({"error": [1]}, "the promise was rejected"),
        ({}, "the promise was rejected"),
    ],
)
async def test_a_rejection_is_the_failure_of_the_workflow(
    acme: Client, body: Any, message: str
) -> None:
    started = await acme.start("approval")
    await acme.promise_of(started["id"], "decision")
    answer = await acme.ask(f"promises/id:{started['id']}:decision/reject", body, key="evt_1")

    assert answer.status_code == 200
    promise = answer.json()["promise"]
    assert (promise["state"], promise["resolved_by"]) == ("rejected", "evt_1")
    assert promise["error"]["message"] == message
    assert promise["error"].get("data") == body.get("error")
    ended = await acme.end_of(started["id"])
    assert ended["status"] == "failed"
    assert (ended["error"]["code"], ended["error"]["message"]) == ("promise-rejected", message)


@pytest.mark.parametrize("body", [{}, {"result": 1, "error": "x"}])
async def test_to_complete_takes_exactly_one_of_two(acme: Client, body: Any) -> None:
    token = (await make(acme, token=True))["token"]
    for path, more in [
        ("/api/v1/promises/complete", {"token": token}),
        ("/api/v1/workflows/wf_0000000000000001/promises/x/complete", {}),
    ]:
        answer = await acme.ask(path, {**body, **more})
        assert answer.status_code == 400
        assert "exactly one" in answer.json()["detail"]


async def test_to_complete_with_an_error_rejects(acme: Client) -> None:
    token = (await make(acme, token=True))["token"]
    answer = await acme.ask("/api/v1/promises/complete", {"token": token, "error": "no"})
    assert answer.json()["promise"]["state"] == "rejected"


@pytest.mark.parametrize(
    "path",
    [
        "promises/key:nobody/resolve",
        "promises/id:pr_0000000000000001:x/resolve",
        "promises/id:wf_0000000000000001:x/resolve",
        "promises/id:nonsense/resolve",
        "promises/id:nonsense/resolve?park=true",
        "/api/v1/workflows/wf_0000000000000001/promises/x/complete",
        "/api/v1/workflows/nonsense/promises/x/complete",
    ],
)
async def test_what_is_unknown_is_not_found(acme: Client, path: str) -> None:
    member = "result" if path.endswith("complete") else "value"
    answer = await acme.ask(path, {member: 1})
    assert answer.status_code == 404


@pytest.mark.parametrize("token", ["ct_" + "A" * 43, "ct_", "x", ""])
async def test_an_unknown_token_is_not_found(acme: Client, token: str) -> None:
    answer = await acme.ask("/api/v1/promises/complete", {"token": token, "result": 1})
    assert answer.status_code == 404


@pytest.mark.parametrize("query, body", [("?park=true", {}), ("", {"park": True})])
async def test_an_early_resolution_is_parked_and_delivered(
    acme: Client, query: str, body: Any
) -> None:
    early = {"value": "early", **body}
    parked = await acme.ask(f"promises/key:stripe:ch_9/resolve{query}", early, key="evt_1")
    again = await acme.ask(f"promises/key:stripe:ch_9/resolve{query}", early, key="evt_1")
    started = await acme.start("order", 9)
    ended = await acme.end_of(started["id"])

    assert (parked.status_code, again.status_code) == (202, 202)
    assert parked.json()["promise"] is None
    assert parked.json()["parked_until"] is not None
    assert flags(parked) == (False, True, True)
    assert flags(again) == (False, True, False)
    assert ended["result"] == "early"


async def test_a_promise_made_after_its_resolution_is_resolved(acme: Client) -> None:
    await acme.ask("promises/key:k/resolve", {"value": 5, "park": True, "park_ttl": "1h"})
    made = await make(acme, key="k")
    assert (made["state"], made["value"]) == ("resolved", 5)


async def test_after_its_time_a_promise_is_gone(acme: Client) -> None:
    made = await make(acme, timeout="1ms", key="k")
    seen = (await acme.see(f"promises/id:{made['id']}?wait=60s")).json()
    answers = [await resolve(acme, address, 1) for address in (f"id:{made['id']}", "key:k")]

    assert seen["state"] == "timed_out"
    for answer in answers:
        assert answer.status_code == 410
        assert answer.json()["state"] == "timed_out"
        assert answer.json()["type"].endswith("/promise-over")


async def test_a_promise_of_a_cancelled_workflow_is_gone(acme: Client) -> None:
    started = await acme.start("approval")
    await acme.promise_of(started["id"], "decision")
    await acme.ask(f"workflows/{started['id']}/cancel", key="stop")
    answer = await resolve(acme, f"id:{started['id']}:decision", 1)

    assert (answer.status_code, answer.json()["state"]) == (410, "cancelled")


async def test_a_key_that_expired_is_gone(acme: Client) -> None:
    await make(acme, key="k", key_ttl="1ms")
    while True:
        # Before it expires, a rejected body is the only way to ask without settling.
        seen = await acme.see("promises/key:k")
        if seen.status_code != 200:
            break
    answer = await resolve(acme, "key:k", 1)
    assert (answer.status_code, answer.json()["state"]) == (410, "expired")


# -- addressed ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key, written",
    [
        ("stripe:ch_1", "stripe:ch_1"),
        ("stripe:ch_1", "stripe%3Ach_1"),
        ("a/b/c", "a/b/c"),
        ("a/b", "a%2Fb"),
        ("a/resolve", "a/resolve"),
        ("100% sure?", "100%25%20sure%3F"),
        ("a+b", "a+b"),
        ("ключ", "%D0%BA%D0%BB%D1%8E%D1%87"),
        ("id:x", "id:x"),
    ],
)
async def test_keys_are_addressed_as_they_are_or_encoded(
    acme: Client, key: str, written: str
) -> None:
    made = await make(acme, key=key)

    assert (await acme.see(f"promises/key:{written}")).json() == made
    answer = await resolve(acme, f"key:{written}", 1)
    assert answer.json()["promise"]["id"] == made["id"]


@pytest.mark.parametrize("address", ["x", "ct_abc", "id:", "key:", "token:x", "x:y"])
async def test_an_address_says_what_it_is(acme: Client, address: str) -> None:
    for answer in (await acme.see(f"promises/{address}"), await resolve(acme, address)):
        assert answer.status_code == 400
        assert "id:… or key:…" in answer.json()["detail"]


# -- listed and waited for ---------------------------------------------------------------------


async def test_promises_are_listed_by_state(acme: Client) -> None:
    first, second = await make(acme, name="a"), await make(acme, name="b")
    started = await acme.start("approval")
    third = await acme.promise_of(started["id"], "decision")
    await resolve(acme, f"id:{first['id']}", 1)

    async def ids(query: str = "") -> list[str]:
        return [each["id"] for each in (await acme.see(f"promises{query}")).json()["promises"]]

    assert await ids() == [third["id"], second["id"], first["id"]]
    assert await ids("?state=resolved") == [first["id"]]
    assert await ids("?state=pending") == [third["id"], second["id"]]
    page = (await acme.see("promises?limit=2")).json()
    assert await ids(f"?before={page['next_before']}") == [first["id"]]


async def test_whoever_waits_is_answered_when_it_is_settled(acme: Client) -> None:
    made = await make(acme)
    waiting = asyncio.create_task(acme.see(f"promises/id:{made['id']}?wait=60s"))
    await asyncio.sleep(0)
    await resolve(acme, f"id:{made['id']}", "now")

    assert (await waiting).json()["value"] == "now"


async def test_whoever_waits_too_long_sees_how_it_is(acme: Client) -> None:
    made = await make(acme)
    seen = await acme.see(f"promises/id:{made['id']}?wait=1ms")
    assert (seen.status_code, seen.json()["state"]) == (200, "pending")
