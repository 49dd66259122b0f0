"""Events over gRPC: published once, and whoever waits for them goes on."""

from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from grpc import StatusCode

from oncekey.api.grpc import oncekey_pb2 as pb
from tests.fixtures.api_site import turn
from tests.fixtures.grpc_site import Client, Refused, dump, load

pytestmark = pytest.mark.anyio


async def publish(client: Client, data: Any, **fields: Any) -> Any:
    request = pb.PublishRequest(**{"key": "parcel:sent", "data_json": dump(data), **fields})
    return await client.ask(client.events.Publish, request)


async def waiting(client: Client, number: int) -> str:
    """A workflow that waits for the parcel of that number."""
    started = await client.ask(
        client.workflows.Start, pb.StartRequest(name="parcel", input_json=dump(number))
    )
    workflow: str = started.execution.id
    request = pb.GetExecutionRequest(id=workflow)
    while (await client.ask(client.workflows.Get, request)).status != "waiting":
        await turn()
    return workflow


async def test_an_event_wakes_whom_it_fits(acme: Client) -> None:
    first, second = await waiting(acme, 1), await waiting(acme, 2)
    answer = await publish(acme, {"number": 2}, idempotency_key="ev-1")
    assert answer.event_id.startswith("ev_")
    assert (answer.matched, answer.idempotency_key_used, answer.idempotency_key_new) == (
        1,
        True,
        True,
    )
    request = pb.GetExecutionRequest(id=second, wait=Duration(seconds=60))
    assert load((await acme.ask(acme.workflows.Get, request)).result_json) == {"number": 2}
    request = pb.GetExecutionRequest(id=first)
    assert (await acme.ask(acme.workflows.Get, request)).status != "succeeded"


async def test_an_event_is_published_once(acme: Client) -> None:
    first = await publish(acme, {"number": 1}, idempotency_key="ev-1")
    again = await publish(acme, {"number": 1}, idempotency_key="ev-1")
    assert again.event_id == first.event_id
    assert (again.idempotency_key_used, again.idempotency_key_new) == (True, False)
    with pytest.raises(Refused) as refused:
        await publish(acme, {"number": 2}, idempotency_key="ev-1")
    assert refused.value.code == "idempotency-key-reused"


async def test_the_idempotency_key_may_stand_in_the_metadata(acme: Client) -> None:
    request = pb.PublishRequest(key="parcel:sent", data_json=b'{"number": 1}')
    first = await acme.ask(acme.events.Publish, request, key="ev-1")
    again = await publish(acme, {"number": 1}, idempotency_key="ev-1")
    assert (again.event_id, again.idempotency_key_new) == (first.event_id, False)


async def test_without_a_key_each_is_an_event_of_its_own(acme: Client) -> None:
    first, second = await publish(acme, {}), await publish(acme, {})
    assert first.event_id != second.event_id
    assert not first.idempotency_key_used


async def test_what_cannot_be_published_is_refused_by_its_rule(acme: Client) -> None:
    for fields, code in [
        ({"data_json": b"{"}, "invalid-input"),
        ({"data_json": dump("x" * (300 << 10))}, "payload-too-large"),
    ]:
        with pytest.raises(Refused) as refused:
            await publish(acme, None, **fields)
        assert refused.value.status is StatusCode.INVALID_ARGUMENT
        assert refused.value.code == code
