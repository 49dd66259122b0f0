"""Workflows and tasks over gRPC: started by key, read, listed and controlled."""

from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from grpc import StatusCode

from oncekey.api.grpc import oncekey_pb2 as pb
from tests.fixtures.grpc_site import Client, Refused, dump, load

pytestmark = pytest.mark.anyio

MINUTE = Duration(seconds=60)


async def start(client: Client, name: str, value: Any = None, **fields: Any) -> Any:
    request = pb.StartRequest(name=name, input_json=dump(value), **fields)
    return await client.ask(client.workflows.Start, request)


async def over(client: Client, name: str, value: Any = None, **fields: Any) -> Any:
    """The execution, once it has ended."""
    started = await start(client, name, value, **fields)
    return await got(client, started.execution.id)


async def got(client: Client, workflow: str, wait: Duration = MINUTE) -> Any:
    return await client.ask(client.workflows.Get, pb.GetExecutionRequest(id=workflow, wait=wait))


async def control(client: Client, action: str, workflow: str, key: str, **fields: Any) -> Any:
    kind = pb.ForkRequest if action == "Fork" else pb.ControlRequest
    request = kind(id=workflow, request_key=key, **fields)
    return await client.ask(getattr(client.workflows, action), request)


# -- started ---------------------------------------------------------------------------------


async def test_a_workflow_is_started_and_ends(acme: Client) -> None:
    started = await start(acme, "steps", 2)
    assert started.created
    ended = await got(acme, started.execution.id)
    assert (ended.kind, ended.name, ended.status) == ("workflow", "steps", "succeeded")
    assert (load(ended.input_json), load(ended.result_json)) == (2, 2)
    assert not ended.HasField("error_json")
    assert ended.completed_at.ToMilliseconds() >= ended.created_at.ToMilliseconds()


async def test_a_key_starts_one_workflow(acme: Client) -> None:
    first = await start(acme, "steps", 2, key="order:7")
    again = await start(acme, "steps", 2, key="order:7")
    assert (first.created, again.created) == (True, False)
    assert again.execution.id == first.execution.id
    assert again.execution.key == "order:7"
    ended = await got(acme, first.execution.id)
    later = await start(acme, "steps", 2, key="order:7")
    assert later.execution == ended


async def test_the_key_may_stand_in_the_metadata(acme: Client) -> None:
    request = pb.StartRequest(name="steps", input_json=b"2")
    first = await acme.ask(acme.workflows.Start, request, key="order-7")
    again = await start(acme, "steps", 2, key="order-7")
    assert again.execution.id == first.execution.id


@pytest.mark.parametrize("name, value", [("steps", 3), ("approval", "x")])
async def test_a_key_is_for_one_name_and_input(acme: Client, name: str, value: Any) -> None:
    await start(acme, "steps", 2, key="order:7")
    with pytest.raises(Refused) as refused:
        await start(acme, name, value, key="order:7")
    assert refused.value.status is StatusCode.FAILED_PRECONDITION
    assert refused.value.code == "idempotency-key-reused"


@pytest.mark.parametrize("on_failed, created", [("", False), ("keep", False), ("free", True)])
async def test_a_failed_workflow_keeps_its_key_or_frees_it(
    acme: Client, on_failed: str, created: bool
) -> None:
    first = await over(acme, "refusing", key="refund:7", on_failed=on_failed)
    assert first.status == "failed"
    error = load(first.error_json)
    assert (error["code"], error["message"]) == ("terminal-error", "there is nothing to refund")
    again = await start(acme, "refusing", key="refund:7", on_failed=on_failed)
    assert again.created is created
    assert (again.execution.id != first.id) is created


async def test_a_task_is_started_by_key(acme: Client) -> None:
    request = pb.StartRequest(name="double", input_json=b"21", key="d:1")
    first = await acme.ask(acme.workflows.StartTask, request)
    again = await acme.ask(acme.workflows.StartTask, request)
    assert (first.created, again.created) == (True, False)
    ended = await got(acme, first.execution.id)
    assert (ended.kind, load(ended.result_json)) == ("task", 42)
    assert ended.id.startswith("tk_")


async def test_what_cannot_be_started_is_refused_by_its_rule(acme: Client) -> None:
    for request, status, code in [
        (pb.StartRequest(name="unknown"), StatusCode.NOT_FOUND, "name-unknown"),
        (pb.StartRequest(name="double"), StatusCode.NOT_FOUND, "name-unknown"),
        (
            pb.StartRequest(name="steps", input_json=b"{"),
            StatusCode.INVALID_ARGUMENT,
            "invalid-input",
        ),
        (
            pb.StartRequest(name="steps", input_json=b"2", on_failed="never"),
            StatusCode.INVALID_ARGUMENT,
            "invalid-input",
        ),
        (
            pb.StartRequest(name="approval", input_json=dump("x" * (1 << 20))),
            StatusCode.INVALID_ARGUMENT,
            "payload-too-large",
        ),
    ]:
        with pytest.raises(Refused) as refused:
            await acme.ask(acme.workflows.Start, request)
        assert (refused.value.status, refused.value.code) == (status, code)
    listed = await acme.ask(acme.workflows.List, pb.ListExecutionsRequest())
    assert list(listed.executions) == []


# -- read ------------------------------------------------------------------------------------


async def test_the_journal_tells_the_steps_in_pages(acme: Client) -> None:
    ended = await over(acme, "steps", 5)
    request = pb.JournalRequest(id=ended.id, page_size=2)
    entries, pages = [], 0
    while True:
        page = await acme.ask(acme.workflows.Journal, request)
        entries += page.entries
        pages += 1
        request.page_token = page.next_page_token
        if not page.next_page_token:
            break
    assert pages == 3
    assert [(each.step, each.kind, each.name) for each in entries] == [
        (number + 1, "run", f"step-{number}") for number in range(5)
    ]
    assert [load(each.value_json) for each in entries] == list(range(5))
    assert not any(each.failed or each.HasField("error_json") for each in entries)
    assert {each.attempts for each in entries} == {1}


async def test_a_list_is_paged_and_filtered(acme: Client) -> None:
    ids = [(await over(acme, "steps", number)).id for number in range(3)]
    task = await acme.ask(acme.workflows.StartTask, pb.StartRequest(name="double", input_json=b"1"))
    await got(acme, task.execution.id)

    async def listed(**fields: Any) -> list[str]:
        found, token = [], ""
        while True:
            request = pb.ListExecutionsRequest(page_size=2, page_token=token, **fields)
            page = await acme.ask(acme.workflows.List, request)
            assert len(page.executions) <= 2
            found += [each.id for each in page.executions]
            token = page.next_page_token
            if not token:
                return found

    assert await listed() == [task.execution.id, *reversed(ids)]
    assert await listed(kind="task") == [task.execution.id]
    assert await listed(name="steps") == ids[::-1]
    assert await listed(status="failed") == []


@pytest.mark.parametrize(
    "fields, rule",
    [
        ({"status": "over"}, "status 'over' is not one of ready"),
        ({"kind": "job"}, "kind 'job' is not one of workflow, task"),
        ({"page_token": "next"}, "page_token"),
        ({"page_size": -1}, "page_size"),
    ],
)
async def test_a_list_that_makes_no_sense_is_refused(
    acme: Client, fields: dict[str, Any], rule: str
) -> None:
    with pytest.raises(Refused, match=rule) as refused:
        await acme.ask(acme.workflows.List, pb.ListExecutionsRequest(**fields))
    assert refused.value.status is StatusCode.INVALID_ARGUMENT


async def test_an_unknown_workflow_is_not_found(acme: Client) -> None:
    for workflow in ("wf_0000000000000001", "nothing", ""):
        for request, method in [
            (pb.GetExecutionRequest(id=workflow), acme.workflows.Get),
            (pb.GetExecutionRequest(id=workflow, wait=MINUTE), acme.workflows.Get),
            (pb.JournalRequest(id=workflow), acme.workflows.Journal),
        ]:
            with pytest.raises(Refused) as refused:
                await acme.ask(method, request)
            assert refused.value.code == "not-found"


# -- controlled ------------------------------------------------------------------------------


async def test_a_control_is_done_once_and_replayed(acme: Client) -> None:
    workflow = (await start(acme, "approval", "x")).execution.id
    first = await control(acme, "Cancel", workflow, "stop-1")
    again = await control(acme, "Cancel", workflow, "stop-1")
    assert (first.workflow_id, first.status) == (workflow, "cancelled")
    assert (first.idempotency_replayed, again.idempotency_replayed) == (False, True)
    assert (again.workflow_id, again.status) == (first.workflow_id, first.status)
    assert (await got(acme, workflow)).status == "cancelled"


async def test_the_control_key_may_stand_in_the_metadata(acme: Client) -> None:
    workflow = (await start(acme, "approval", "x")).execution.id
    request = pb.ControlRequest(id=workflow)
    await acme.ask(acme.workflows.Cancel, request, key="stop-1")
    again = await control(acme, "Cancel", workflow, "stop-1")
    assert again.idempotency_replayed


async def test_a_control_that_failed_before_says_so_again(acme: Client) -> None:
    ended = await over(acme, "steps", 1)
    refusals = []
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            await control(acme, "Resume", ended.id, "go-1")
        assert refused.value.status is StatusCode.FAILED_PRECONDITION
        assert refused.value.code == "control-refused"
        refusals.append(refused.value.message)
    assert "before" in refusals[1]


async def test_a_control_key_is_for_one_action_workflow_and_parameters(acme: Client) -> None:
    ended = await over(acme, "steps", 3)
    other = await over(acme, "steps", 3)
    await control(acme, "Fork", ended.id, "again-1", from_step=2)
    for action, workflow, fields in [
        ("Cancel", ended.id, {}),
        ("Fork", other.id, {"from_step": 2}),
        ("Fork", ended.id, {"from_step": 3}),
    ]:
        with pytest.raises(Refused) as refused:
            await control(acme, action, workflow, "again-1", **fields)
        assert refused.value.code == "control-refused"


@pytest.mark.parametrize("key", ["", "   ", "x" * 201])
async def test_a_control_needs_a_request_key(acme: Client, key: str) -> None:
    workflow = (await start(acme, "approval", "x")).execution.id
    with pytest.raises(Refused) as refused:
        await control(acme, "Cancel", workflow, key)
    assert refused.value.status is StatusCode.INVALID_ARGUMENT
    assert refused.value.code == "request-key-invalid"


async def test_a_fork_has_the_steps_before_it(acme: Client) -> None:
    ended = await over(acme, "steps", 3)
    answer = await control(acme, "Fork", ended.id, "again-1", from_step=2)
    assert answer.workflow_id != ended.id
    forked = await got(acme, answer.workflow_id)
    assert (forked.status, forked.forked_from) == ("succeeded", ended.id)
    journals = [
        await acme.ask(acme.workflows.Journal, pb.JournalRequest(id=each))
        for each in (ended.id, forked.id)
    ]
    times = [[each.at.ToMilliseconds() for each in journal.entries] for journal in journals]
    assert times[1][0] == times[0][0]
    assert len(times[1]) == 3


async def test_an_unknown_workflow_is_not_controlled(acme: Client) -> None:
    for action in ("Cancel", "Resume", "Fork"):
        with pytest.raises(Refused) as refused:
            await control(acme, action, "wf_0000000000000001", "key-1")
        assert refused.value.code == "not-found"
