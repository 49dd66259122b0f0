"""Promises over HTTP: every row of how they are made."""

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


def flags(answer: httpx.Response) -> tuple[bool, bool, bool]:
    seen = answer.json()
    return seen["already_resolved"], seen["idempotency_key_used"], seen["idempotency_key_new"]


async def test_a_promise_is_made_with_its_key(acme: Client) -> None:
    answer = await acme.ask("promises", {"name": "payment", "key": "stripe:ch_1", "timeout": "1h"})

    made = answer.json()
    assert answer.status_code == 201
    assert made["id"].startswith("pr_")
    assert made["id"].endswith(":payment")
    assert (made["state"], made["key"], made["workflow_id"]) == ("pending", "stripe:ch_1", None)
    assert made["timeout_at"] > made["created_at"]
    assert made["key_expires_at"] > made["timeout_at"]
    assert "token" not in made
    for place in (answer.headers["location"], "promises/key:stripe:ch_1"):
        assert (await acme.see(place)).json() == made


async def test_a_key_of_another_promise_is_a_conflict_that_names_it(acme: Client) -> None:
    first = await make(acme, key="stripe:ch_1")
    answer = await acme.ask("promises", {"name": "other", "key": "stripe:ch_1"})

    assert answer.status_code == 409
    assert answer.json()["type"].endswith("/key-conflict")
    assert answer.json()["existing_promise_id"] == first["id"]
    listed = (await acme.see("promises")).json()["promises"]
    assert listed == [first]


async def test_of_many_that_want_one_key_one_gets_it(acme: Client) -> None:
    asked = [acme.ask("promises", {"name": f"p-{each}", "key": "k"}) for each in range(20)]
    answers = await asyncio.gather(*asked)

    made = [each.json() for each in answers if each.status_code == 201]
    refused = [each.json() for each in answers if each.status_code == 409]
    assert (len(made), len(refused)) == (1, 19)
    assert {each["existing_promise_id"] for each in refused} == {made[0]["id"]}


async def test_a_key_is_free_again_when_it_has_expired(acme: Client) -> None:
    first = await make(acme, key="k", key_ttl=0.001)
    while True:
        second = await acme.ask("promises", {"name": "payment", "key": "k"})
        if second.status_code == 201:
            break
    assert second.json()["id"] != first["id"]
    assert (await acme.see("promises/key:k")).json()["id"] == second.json()["id"]


async def test_a_retry_gets_the_answer_that_was_kept(acme: Client) -> None:
    first = await acme.ask("promises", {"name": "payment"}, key="k-1")
    again = await acme.ask("promises", {"name": "payment"}, key="k-1")
    other = await acme.ask("promises", {"name": "other"}, key="k-1")

    assert (first.status_code, again.status_code, other.status_code) == (201, 201, 422)
    assert again.content == first.content
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"]
    assert len((await acme.see("promises")).json()["promises"]) == 1


async def test_at_once_with_one_idempotency_key_one_is_made(acme: Client) -> None:
    asked = [acme.ask("promises", {"name": "payment"}, key="k-1") for _ in range(20)]
    answers = await asyncio.gather(*asked)

    assert {each.status_code for each in answers} <= {201, 409}
    assert len({each.content for each in answers if each.status_code == 201}) == 1
    assert len((await acme.see("promises")).json()["promises"]) == 1


async def test_a_token_is_told_once_and_completes_its_promise(acme: Client) -> None:
    made = await make(acme, token=True)
    token = made.pop("token")
    assert token.startswith("ct_")
    assert (await acme.see(f"promises/id:{made['id']}")).json() == made

    body = {"token": token, "request_id": "r-1", "result": {"paid": True}}
    answer = await acme.ask("/api/v1/promises/complete", body)
    assert answer.status_code == 200
    assert answer.json()["promise"]["value"] == {"paid": True}
    assert flags(answer) == (False, True, True)
    again = await acme.ask("/api/v1/promises/complete", body)
    assert flags(again)[1:] == (True, False)


async def test_an_answer_with_a_token_is_not_kept(acme: Client) -> None:
    answer = await acme.ask("promises", {"name": "payment", "token": True}, key="k-1")
    assert answer.status_code == 400
    assert "token" in answer.json()["detail"]
    assert (await acme.see("promises")).json()["promises"] == []
