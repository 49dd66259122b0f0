"""Promises over gRPC: every row of how they are made and settled."""

from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from grpc import StatusCode

from oncekey.api.grpc import oncekey_pb2 as pb
from tests.fixtures.grpc_site import Client, Refused, dump, load, when_not

pytestmark = pytest.mark.anyio

MINUTE = Duration(seconds=60)
EXACT = b'{"amount": 12345678901234567890, "rate": 0.10, "whole": 1.0}'


async def made(client: Client, **fields: Any) -> Any:
    request = pb.CreatePromiseRequest(**{"name": "payment", **fields})
    return await client.ask(client.promises.Create, request)


async def resolve(client: Client, value: Any = None, **fields: Any) -> Any:
    request = pb.ResolveRequest(value_json=dump(value), **fields)
    return await client.ask(client.promises.Resolve, request)


async def seen(client: Client, **fields: Any) -> Any:
    return await client.ask(client.promises.Get, pb.GetPromiseRequest(**fields))


# -- made ------------------------------------------------------------------------------------


async def test_a_promise_is_made_with_its_key(acme: Client) -> None:
    answer = await made(acme, key="stripe:ch_1", timeout=MINUTE)
    promise = answer.promise
    assert promise.id.startswith("pr_")
    assert promise.id.endswith(":payment")
    assert (promise.name, promise.state, promise.key) == ("payment", "pending", "stripe:ch_1")
    life = promise.key_expires_at.ToMilliseconds() - promise.created_at.ToMilliseconds()
    assert life >= 24 * 3600 * 1000
    assert promise.timeout_at.ToMilliseconds() == promise.created_at.ToMilliseconds() + 60_000
    assert not promise.HasField("workflow_id")
    assert not answer.HasField("token")
    assert await seen(acme, id=promise.id) == promise
    assert await seen(acme, key="stripe:ch_1") == promise


async def test_a_promise_needs_no_key(acme: Client) -> None:
    first, second = await made(acme), await made(acme)
    assert first.promise.id != second.promise.id
    assert not first.promise.HasField("key")


async def test_a_key_of_another_promise_is_a_conflict_that_names_it(acme: Client) -> None:
    first = await made(acme, key="stripe:ch_1")
    with pytest.raises(Refused) as refused:
        await made(acme, key="stripe:ch_1", name="other")
    assert refused.value.status is StatusCode.ALREADY_EXISTS
    assert refused.value.trailers == {
        "oncekey-code": "key-conflict",
        "existing-promise-id": first.promise.id,
    }


async def test_a_key_is_free_again_when_it_has_expired(acme: Client) -> None:
    first = await made(acme, key="stripe:ch_1", key_ttl=Duration(nanos=1_000_000))
    second = await when_not("key-conflict", lambda: made(acme, key="stripe:ch_1"))
    assert second.promise.id != first.promise.id
    assert (await seen(acme, key="stripe:ch_1")).id == second.promise.id


async def test_what_cannot_be_made_is_refused_by_its_rule(acme: Client) -> None:
    for fields, rule in [
        ({"name": ""}, "name"),
        ({"timeout": Duration(seconds=-1)}, "timeout"),
        ({"key": "k", "key_ttl": Duration()}, "key_ttl"),
    ]:
        with pytest.raises(Refused, match=rule) as refused:
            await made(acme, **fields)
        assert refused.value.status is StatusCode.INVALID_ARGUMENT


async def test_an_idempotency_key_makes_one_promise(acme: Client) -> None:
    request = pb.CreatePromiseRequest(name="payment")
    first = await acme.ask(acme.promises.Create, request, key="create-1")
    again = await acme.ask(acme.promises.Create, request, key="create-1")
    assert (first.idempotency_replayed, again.idempotency_replayed) == (False, True)
    assert again.promise == first.promise
    other = pb.CreatePromiseRequest(name="other")
    with pytest.raises(Refused) as refused:
        await acme.ask(acme.promises.Create, other, key="create-1")
    assert refused.value.code == "idempotency-key-reused"


async def test_a_token_is_not_kept_for_a_replay(acme: Client) -> None:
    request = pb.CreatePromiseRequest(name="payment", token=True)
    with pytest.raises(Refused, match="leave out the key, or the token") as refused:
        await acme.ask(acme.promises.Create, request, key="create-1")
    assert refused.value.status is StatusCode.INVALID_ARGUMENT


async def test_a_conflict_is_not_the_answer_for_ever(acme: Client) -> None:
    """Nothing was made, so the idempotency key is free; and the conflict names its promise."""
    taken = await made(acme, key="stripe:ch_1")
    request = pb.CreatePromiseRequest(name="payment", key="stripe:ch_1")
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            await acme.ask(acme.promises.Create, request, key="create-1")
        assert refused.value.trailers["existing-promise-id"] == taken.promise.id


# -- settled ---------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["id", "key"])
async def test_a_pending_promise_is_resolved(acme: Client, by: str) -> None:
    promise = (await made(acme, key="stripe:ch_1")).promise
    request = pb.ResolveRequest(value_json=EXACT, request_key="evt_1", **{by: getattr(promise, by)})
    answer = await acme.ask(acme.promises.Resolve, request)
    assert (answer.already_resolved, answer.idempotency_key_used, answer.idempotency_key_new) == (
        False,
        True,
        True,
    )
    assert answer.resolved_by == "evt_1"
    assert (answer.promise.state, answer.promise.value_json) == ("resolved", EXACT)
    assert await seen(acme, id=promise.id) == answer.promise


async def test_the_same_request_again_gets_the_first_answer(acme: Client) -> None:
    promise = (await made(acme)).promise
    first = await resolve(acme, 1, id=promise.id, request_key="evt_1")
    again = await resolve(acme, 1, id=promise.id, request_key="evt_1")
    assert again.idempotency_key_used
    assert not again.idempotency_key_new
    assert again.promise == first.promise
    assert again.already_resolved == first.already_resolved


async def test_another_request_changes_nothing_and_hears_who_did_it(acme: Client) -> None:
    promise = (await made(acme)).promise
    await resolve(acme, "first", id=promise.id, request_key="evt_1")
    answer = await resolve(acme, "second", id=promise.id, request_key="evt_2")
    assert answer.already_resolved
    assert answer.resolved_by == "evt_1"
    assert load(answer.promise.value_json) == "first"


async def test_a_request_without_a_key_uses_none(acme: Client) -> None:
    promise = (await made(acme)).promise
    answer = await resolve(acme, 1, id=promise.id)
    assert not answer.idempotency_key_used
    assert (await resolve(acme, 2, id=promise.id)).already_resolved


async def test_a_request_key_is_for_one_promise(acme: Client) -> None:
    first, second = (await made(acme)).promise, (await made(acme)).promise
    await resolve(acme, 1, id=first.id, request_key="evt_1")
    with pytest.raises(Refused) as refused:
        await resolve(acme, 1, id=second.id, request_key="evt_1")
    assert refused.value.status is StatusCode.FAILED_PRECONDITION
    assert refused.value.code == "idempotency-key-reused"


async def test_the_request_key_may_stand_in_the_metadata(acme: Client) -> None:
    promise = (await made(acme)).promise
    request = pb.ResolveRequest(id=promise.id, value_json=b"1")
    first = await acme.ask(acme.promises.Resolve, request, key="evt_1")
    again = await resolve(acme, 1, id=promise.id, request_key="evt_1")
    assert (first.resolved_by, again.idempotency_key_new) == ("evt_1", False)
    differing = pb.ResolveRequest(id=promise.id, value_json=b"1", request_key="evt_2")
    with pytest.raises(Refused, match="request_key and the metadata 'idempotency-key' differ"):
        await acme.ask(acme.promises.Resolve, differing, key="evt_1")


async def test_a_key_in_the_metadata_follows_the_grammar_of_the_header(acme: Client) -> None:
    promise = (await made(acme)).promise
    request = pb.ResolveRequest(id=promise.id, value_json=b"1")
    with pytest.raises(Refused, match="the key holds") as refused:
        await acme.ask(acme.promises.Resolve, request, key="evt 1")
    assert refused.value.code == "idempotency-key-invalid"


async def test_an_early_resolution_is_parked_and_delivered(acme: Client) -> None:
    early = await resolve(acme, "paid", key="stripe:ch_1", park=True, request_key="evt_1")
    assert not early.HasField("promise")
    assert early.HasField("parked_until")
    assert not early.already_resolved
    promise = (await made(acme, key="stripe:ch_1")).promise
    assert (promise.state, load(promise.value_json)) == ("resolved", "paid")
    assert promise.resolved_by == "evt_1"


async def test_a_workflow_gets_what_was_parked_for_it(acme: Client) -> None:
    await resolve(acme, "paid", key="stripe:ch_7", park=True, request_key="evt_1")
    started = await acme.ask(acme.workflows.Start, pb.StartRequest(name="order", input_json=b"7"))
    over = await acme.ask(
        acme.workflows.Get, pb.GetExecutionRequest(id=started.execution.id, wait=MINUTE)
    )
    assert load(over.result_json) == "paid"


async def test_what_is_unknown_is_not_found(acme: Client) -> None:
    for fields in (
        {"id": "pr_0000000000000001:payment"},
        {"id": "nothing"},
        {"key": "stripe:ch_1"},
        {"key": "stripe:ch_1", "park": False},
    ):
        with pytest.raises(Refused) as refused:
            await resolve(acme, 1, request_key="evt_1", **fields)
        assert refused.value.status is StatusCode.NOT_FOUND
        assert refused.value.code == "not-found"


async def test_a_promise_that_timed_out_is_over(acme: Client) -> None:
    promise = (await made(acme, timeout=Duration(nanos=1_000_000))).promise
    late = await seen(acme, id=promise.id, wait=MINUTE)
    assert late.state == "timed_out"
    with pytest.raises(Refused) as refused:
        await resolve(acme, 1, id=promise.id, request_key="evt_1")
    assert refused.value.status is StatusCode.FAILED_PRECONDITION
    assert refused.value.trailers == {"oncekey-code": "promise-over", "promise-state": "timed_out"}


async def test_a_promise_of_a_cancelled_workflow_is_over(acme: Client) -> None:
    workflow = await waiting(acme)
    await acme.ask(acme.workflows.Cancel, pb.ControlRequest(id=workflow, request_key="stop"))
    with pytest.raises(Refused) as refused:
        await resolve(acme, 1, id=f"{workflow}:decision")
    assert refused.value.trailers["promise-state"] == "cancelled"


async def waiting(client: Client) -> str:
    """A workflow whose promise `decision` is made."""
    started = await client.ask(
        client.workflows.Start, pb.StartRequest(name="approval", input_json=b'"x"')
    )
    workflow: str = started.execution.id
    await when_not("not-found", lambda: seen(client, id=f"{workflow}:decision"))
    return workflow


async def ended(client: Client, workflow: str) -> Any:
    request = pb.GetExecutionRequest(id=workflow, wait=MINUTE)
    return await client.ask(client.workflows.Get, request)


async def test_a_rejection_fails_the_workflow(acme: Client) -> None:
    workflow = await waiting(acme)
    request = pb.RejectRequest(
        id=f"{workflow}:decision",
        error_json=b'{"code": "declined", "message": "no"}',
        request_key="evt_1",
    )
    answer = await acme.ask(acme.promises.Reject, request)
    assert answer.promise.state == "rejected"
    error = load(answer.promise.error_json)
    assert (error["code"], error["message"]) == ("promise-rejected", "no")
    assert error["data"] == {"code": "declined", "message": "no"}
    assert answer.promise.workflow_id == workflow
    over = await ended(acme, workflow)
    assert over.status == "failed"
    assert load(over.error_json)["code"] == "promise-rejected"


async def test_a_workflow_goes_on_with_its_resolution(acme: Client) -> None:
    workflow = await waiting(acme)
    await resolve(acme, {"approved": True}, id=f"{workflow}:decision")
    over = await ended(acme, workflow)
    assert (over.status, load(over.result_json)) == ("succeeded", {"approved": True})


@pytest.mark.parametrize(
    "outcome, state", [("result_json", "resolved"), ("error_json", "rejected")]
)
async def test_a_token_completes_its_promise(acme: Client, outcome: str, state: str) -> None:
    answer = await made(acme, token=True)
    request = pb.CompleteRequest(token=answer.token, request_id="done-1", **{outcome: b'"x"'})
    settled = await acme.ask(acme.promises.Complete, request)
    assert (settled.promise.id, settled.promise.state) == (answer.promise.id, state)
    again = await acme.ask(acme.promises.Complete, request)
    assert not again.idempotency_key_new


@pytest.mark.parametrize("token", ["", "ct_", "ct_" + "a" * 43, "nothing", "ü"])
async def test_a_token_nobody_gave_out_is_not_found(acme: Client, token: str) -> None:
    with pytest.raises(Refused) as refused:
        await acme.ask(acme.promises.Complete, pb.CompleteRequest(token=token, result_json=b"1"))
    assert refused.value.code == "not-found"


async def test_a_promise_is_completed_by_workflow_and_name(acme: Client) -> None:
    workflow = await waiting(acme)
    request = pb.CompleteByNameRequest(
        workflow_id=workflow, name="decision", request_id="r", result_json=b'"yes"'
    )
    answer = await acme.ask(acme.promises.CompleteByName, request)
    assert (answer.promise.id, answer.resolved_by) == (f"{workflow}:decision", "r")
    assert load((await ended(acme, workflow)).result_json) == "yes"


async def test_a_completion_needs_an_outcome(acme: Client) -> None:
    answer = await made(acme, token=True)
    with pytest.raises(Refused, match="set result_json or error_json") as refused:
        await acme.ask(acme.promises.Complete, pb.CompleteRequest(token=answer.token))
    assert refused.value.code == "invalid-input"


async def test_what_is_no_json_is_refused_and_settles_nothing(acme: Client) -> None:
    promise = (await made(acme)).promise
    request = pb.ResolveRequest(id=promise.id, value_json=b"{")
    with pytest.raises(Refused, match="value_json is not JSON") as refused:
        await acme.ask(acme.promises.Resolve, request)
    assert refused.value.status is StatusCode.INVALID_ARGUMENT
    assert (await seen(acme, id=promise.id)).state == "pending"


async def test_what_is_too_large_is_refused_and_settles_nothing(acme: Client) -> None:
    promise = (await made(acme)).promise
    for size, status, code in [
        ((1 << 20) + 1, StatusCode.INVALID_ARGUMENT, "payload-too-large"),
        (3 << 20, StatusCode.RESOURCE_EXHAUSTED, None),
    ]:
        with pytest.raises(Refused) as refused:
            await resolve(acme, "x" * size, id=promise.id)
        assert (refused.value.status, refused.value.code) == (status, code)
    assert (await seen(acme, id=promise.id)).state == "pending"
