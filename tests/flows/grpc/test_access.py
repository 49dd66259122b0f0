"""Who may call: an API key says, and what is another tenant's is as if it were not there."""

from typing import Any

import pytest
from grpc import StatusCode, aio

from oncekey.api.grpc import oncekey_pb2 as pb
from tests.fixtures.grpc_requests import EVERY, method_of
from tests.fixtures.grpc_site import Client, GrpcSite, Refused

pytestmark = pytest.mark.anyio

TENANTED = [each for each in EVERY if hasattr(each[2], "tenant")]


def of(request: Any, **fields: Any) -> Any:
    """The request with other fields."""
    copy = type(request)()
    copy.CopyFrom(request)
    for name, value in fields.items():
        setattr(copy, name, value)
    return copy


def names(each: Any) -> str | None:
    return each if isinstance(each, str) else None


def test_every_method_is_looked_at() -> None:
    services = pb.DESCRIPTOR.services_by_name
    assert {(service.lower(), name) for service, name, _ in EVERY} == {
        (service.lower(), method.name)
        for service, described in services.items()
        for method in described.methods
    }


@pytest.mark.parametrize("service, name, request_", EVERY, ids=names)
async def test_nobody_calls_without_a_key(
    site: GrpcSite, service: str, name: str, request_: Any
) -> None:
    stranger = Client(site.channel, None)
    with pytest.raises(Refused) as refused:
        await stranger.ask(method_of(stranger, service, name), request_)
    assert refused.value.status is StatusCode.UNAUTHENTICATED
    assert refused.value.code == "unauthorized"


@pytest.mark.parametrize("service, name, request_", TENANTED, ids=names)
async def test_a_tenant_that_is_not_the_callers_is_not_found(
    acme: Client, globex: Client, service: str, name: str, request_: Any
) -> None:
    with pytest.raises(Refused) as refused:
        await acme.ask(method_of(acme, service, name), of(request_, tenant=globex.tenant))
    assert refused.value.status is StatusCode.NOT_FOUND
    assert refused.value.code == "not-found"


async def test_the_callers_tenant_may_be_left_out(acme: Client) -> None:
    request = pb.CreatePromiseRequest(tenant=acme.tenant, name="p")
    named = await acme.ask(acme.promises.Create, request)
    for tenant in ("", acme.tenant):
        request = pb.GetPromiseRequest(tenant=tenant, id=named.promise.id)
        assert (await acme.ask(acme.promises.Get, request)).id == named.promise.id


@pytest.mark.parametrize(
    "authorization",
    [
        [],
        [""],
        ["Bearer"],
        ["Bearer "],
        ["Bearer ok_wrong"],
        ["Bearer ok_" + "a" * 43],
        ["Basic {secret}"],
        ["{secret}"],
        ["Bearer {secret}x"],
        ["Bearer {secret}", "Bearer ok_wrong"],
    ],
    ids=str,
)
async def test_a_key_that_is_none_is_refused(
    site: GrpcSite, acme: Client, authorization: list[str]
) -> None:
    metadata = [("authorization", value.format(secret=acme.secret)) for value in authorization]
    with pytest.raises(aio.AioRpcError) as refused:
        await acme.workflows.List(pb.ListExecutionsRequest(), metadata=metadata)
    assert refused.value.code() is StatusCode.UNAUTHENTICATED
    assert str(acme.secret) not in str(refused.value)


async def test_the_scheme_may_be_written_in_any_case(acme: Client) -> None:
    metadata = [("authorization", f"bearer {acme.secret}")]
    listed = await acme.workflows.List(pb.ListExecutionsRequest(), metadata=metadata)
    assert list(listed.executions) == []


async def test_a_revoked_key_is_refused_as_an_unknown_one(site: GrpcSite) -> None:
    key, secret = await site.callers.create("acme")
    client = Client(site.channel, secret)
    await client.ask(client.workflows.List, pb.ListExecutionsRequest())
    await site.callers.revoke(key.id)
    refused = []
    for each in (client, Client(site.channel, "ok_" + "a" * 43)):
        with pytest.raises(Refused) as error:
            await each.ask(each.workflows.List, pb.ListExecutionsRequest())
        refused.append(error.value.answer)
    assert refused[0] == refused[1]


async def refusal(client: Client, method: Any, request: Any, **options: Any) -> tuple[Any, ...]:
    with pytest.raises(Refused) as refused:
        await client.ask(method, request, **options)
    return refused.value.answer


async def test_what_is_anothers_is_answered_as_what_is_unknown(
    acme: Client, globex: Client
) -> None:
    """By id, key, token and name: the whole answer, letter by letter."""
    started = await acme.ask(
        acme.workflows.Start, pb.StartRequest(name="approval", input_json=b'"x"', key="same")
    )
    made = await acme.ask(
        acme.promises.Create, pb.CreatePromiseRequest(name="p", key="stripe:ch_1", token=True)
    )
    theirs, unknown = started.execution.id, "wf_0000000000000001"
    token = "ct_" + "a" * 43

    for method, request, field, pair in [
        (globex.workflows.Get, pb.GetExecutionRequest(), "id", (theirs, unknown)),
        (globex.workflows.Journal, pb.JournalRequest(), "id", (theirs, unknown)),
        (globex.workflows.Cancel, pb.ControlRequest(request_key="a"), "id", (theirs, unknown)),
        (globex.workflows.Resume, pb.ControlRequest(request_key="b"), "id", (theirs, unknown)),
        (globex.workflows.Fork, pb.ForkRequest(request_key="c"), "id", (theirs, unknown)),
        (globex.promises.Get, pb.GetPromiseRequest(), "id", (made.promise.id, "pr_0:p")),
        (globex.promises.Get, pb.GetPromiseRequest(), "key", ("stripe:ch_1", "stripe:ch_2")),
        (globex.promises.Resolve, pb.ResolveRequest(), "id", (made.promise.id, "pr_0:p")),
        (globex.promises.Resolve, pb.ResolveRequest(), "key", ("stripe:ch_1", "stripe:ch_2")),
        (globex.promises.Reject, pb.RejectRequest(), "id", (made.promise.id, "pr_0:p")),
        (globex.promises.Reject, pb.RejectRequest(), "key", ("stripe:ch_1", "stripe:ch_2")),
        (
            globex.promises.Complete,
            pb.CompleteRequest(result_json=b"1"),
            "token",
            (made.token, token),
        ),
        (
            globex.promises.CompleteByName,
            pb.CompleteByNameRequest(name="decision", result_json=b"1"),
            "workflow_id",
            (theirs, unknown),
        ),
    ]:
        answers = [await refusal(globex, method, of(request, **{field: each})) for each in pair]
        assert answers[0] == answers[1]
        assert answers[0][0] is StatusCode.NOT_FOUND

    kept = await acme.ask(acme.promises.Get, pb.GetPromiseRequest(id=made.promise.id))
    assert kept.state == "pending"


async def test_tenants_use_the_same_keys_for_their_own(acme: Client, globex: Client) -> None:
    start = pb.StartRequest(name="approval", input_json=b'"x"', key="same")
    answers = [await each.ask(each.workflows.Start, start) for each in (acme, globex)]
    assert [each.created for each in answers] == [True, True]
    assert answers[0].execution.id != answers[1].execution.id
    request = pb.CreatePromiseRequest(name="p", key="stripe:ch_1")
    promises = [await each.ask(each.promises.Create, request) for each in (acme, globex)]
    assert promises[0].promise.id != promises[1].promise.id
    listed = await globex.ask(globex.workflows.List, pb.ListExecutionsRequest())
    assert [each.id for each in listed.executions] == [answers[1].execution.id]


async def test_an_event_stays_with_its_tenant(acme: Client, globex: Client) -> None:
    started = await acme.ask(acme.workflows.Start, pb.StartRequest(name="parcel", input_json=b"7"))
    event = pb.PublishRequest(key="parcel:sent", data_json=b'{"number": 7}')
    assert (await globex.ask(globex.events.Publish, event)).matched == 0
    seen = await acme.ask(acme.workflows.Get, pb.GetExecutionRequest(id=started.execution.id))
    assert seen.status in {"ready", "running", "waiting"}
