"""Workflows and tasks over HTTP: started by key, waited for, listed."""

from typing import Any

import pytest

from tests.fixtures.api_site import Client

pytestmark = pytest.mark.anyio


async def test_a_new_workflow_is_made_and_shown_where_the_answer_says(acme: Client) -> None:
    answer = await acme.ask("workflows/approval/start", {"input": {"b": 1}}, key="k-1")

    assert answer.status_code == 201
    made = answer.json()
    assert made["id"].startswith("wf_")
    assert (made["kind"], made["name"], made["key"]) == ("workflow", "approval", "k-1")
    assert made["input"] == {"b": 1}
    assert "idempotent-replayed" not in answer.headers
    found = await acme.see(answer.headers["location"])
    assert found.json()["id"] == made["id"]


async def test_the_same_key_is_the_same_workflow_and_its_result(acme: Client) -> None:
    first = await acme.ask("workflows/echo/start", {"input": [1, 2]}, key="k-1")
    ended = await acme.end_of(first.json()["id"])
    again = await acme.ask("workflows/echo/start", {"input": [1, 2]}, key="k-1")

    assert again.status_code == 200
    assert again.headers["idempotent-replayed"] == "true"
    assert again.json() == ended
    assert (ended["status"], ended["result"]) == ("succeeded", [1, 2])


@pytest.mark.parametrize(
    "path, body",
    [
        ("workflows/echo/start", {"input": 2}),
        ("workflows/approval/start", {"input": 1}),
        ("tasks/double/start", {"input": 1}),
    ],
)
async def test_the_same_key_for_something_else_is_refused(
    acme: Client, path: str, body: Any
) -> None:
    await acme.ask("workflows/echo/start", {"input": 1}, key="k-1")
    answer = await acme.ask(path, body, key="k-1")

    assert answer.status_code == 422
    assert answer.json()["type"].endswith("/idempotency-key-reused")


async def test_without_a_key_every_request_starts_one(acme: Client) -> None:
    first, second = await acme.start("echo", 1), await acme.start("echo", 1)
    assert first["id"] != second["id"]
    assert first["key"] is None


@pytest.mark.parametrize("on_failed, status", [("keep", 200), ("free", 201)])
async def test_a_failed_workflow_keeps_its_key_or_gives_it_back(
    acme: Client, on_failed: str, status: int
) -> None:
    body = {"input": None, "on_failed": on_failed}
    first = await acme.ask("workflows/refusing/start", body, key="k-1")
    ended = await acme.end_of(first.json()["id"])
    again = await acme.ask("workflows/refusing/start", body, key="k-1")

    assert ended["status"] == "failed"
    assert ended["error"]["code"] == "terminal-error"
    assert ended["error"]["message"] == "there is nothing to refund"
    assert again.status_code == status
    assert (again.json()["id"] == first.json()["id"]) is (status == 200)


async def test_the_key_may_stand_in_the_body(acme: Client) -> None:
    first = await acme.ask("workflows/echo/start", {"input": 1, "key": "order:42"})
    again = await acme.ask("workflows/echo/start", {"input": 1, "key": "order:42"})
    both = await acme.ask("workflows/echo/start", {"input": 1, "key": "a"}, key="b")

    assert (first.status_code, again.status_code, both.status_code) == (201, 200, 400)
    assert first.json()["key"] == "order:42"
    assert "differ" in both.json()["detail"]


async def test_an_unknown_name_is_said_to_be_one(acme: Client) -> None:
    for path in ("workflows/nothing/start", "workflows/double/start", "tasks/echo/start"):
        answer = await acme.ask(path)
        assert answer.status_code == 404
        assert answer.json()["type"].endswith("/name-unknown")
    assert (await acme.see("workflows")).json()["workflows"] == []


async def test_a_task_is_started_by_key_and_ends(acme: Client) -> None:
    first = await acme.ask("tasks/double/start", {"input": 21}, key="k-1")
    ended = await acme.end_of(first.json()["id"])
    again = await acme.ask("tasks/double/start", {"input": 21}, key="k-1")

    assert first.json()["id"].startswith("tk_")
    assert (ended["kind"], ended["result"]) == ("task", 42)
    assert (again.status_code, again.json()) == (200, ended)
    listed = (await acme.see("tasks")).json()
    assert [each["id"] for each in listed["tasks"]] == [ended["id"]]


async def test_workflows_and_tasks_are_told_apart(acme: Client) -> None:
    task = (await acme.ask("tasks/double/start", {"input": 1})).json()["id"]
    workflow = (await acme.start("echo"))["id"]

    assert (await acme.see(f"workflows/{task}")).status_code == 404
    assert (await acme.see(f"tasks/{workflow}")).status_code == 404
    assert (await acme.see(f"workflows/{task.replace('tk_', 'wf_')}")).status_code == 404


async def test_inputs_are_kept_as_they_came(acme: Client) -> None:
    exact = '{"amount":12345678901234567890,"rate":0.10,"text":"ä\\u0000"}'
    answer = await acme.post(
        acme.place("workflows/approval/start"), content=f'{{"input": {exact}}}'.encode()
    )
    assert answer.status_code == 201
    assert f'"input":{exact}' in answer.text
    shown = await acme.see(f"workflows/{answer.json()['id']}")
    assert f'"input":{exact}' in shown.text


async def test_a_journal_is_read_in_pages(acme: Client) -> None:
    started = await acme.start("steps", 5)
    await acme.end_of(started["id"])
    path = f"workflows/{started['id']}/journal"

    whole = (await acme.see(path)).json()
    assert [(each["step"], each["name"]) for each in whole["entries"]] == [
        (number + 1, f"step-{number}") for number in range(5)
    ]
    assert whole["entries"][3]["value"] == 3
    assert whole["next_after"] is None
    page = (await acme.see(f"{path}?limit=2")).json()
    assert [each["step"] for each in page["entries"]] == [1, 2]
    rest = (await acme.see(f"{path}?after={page['next_after']}")).json()
    assert rest["entries"] == whole["entries"][2:]


async def test_lists_are_pages_with_filters(acme: Client) -> None:
    waiting = [(await acme.start("approval", number))["id"] for number in range(3)]
    failed = (await acme.start("refusing"))["id"]
    await acme.end_of(failed)
    for each in waiting:
        await acme.promise_of(each, "decision")

    async def ids(query: str = "") -> list[str]:
        found = (await acme.see(f"workflows{query}")).json()
        return [each["id"] for each in found["workflows"]]

    newest_first = [failed, *reversed(waiting)]
    assert await ids() == newest_first
    assert await ids("?name=approval") == newest_first[1:]
    assert await ids("?status=failed") == [failed]
    assert await ids("?status=failed&name=approval") == []
    page = (await acme.see("workflows?limit=3")).json()
    assert page["next_before"] == newest_first[2]
    last = (await acme.see(f"workflows?limit=3&before={page['next_before']}")).json()
    assert [each["id"] for each in last["workflows"]] == newest_first[3:]
    assert last["next_before"] is None
