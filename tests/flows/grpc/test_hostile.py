"""Whatever stands in a request, the answer is an answer or a refusal that names its reason."""

from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from grpc import StatusCode

from oncekey.api.grpc import oncekey_pb2 as pb
from tests.fixtures.grpc_requests import EVERY, method_of
from tests.fixtures.grpc_site import Client, GrpcSite, Refused

pytestmark = pytest.mark.anyio

TEXTS = [
    "\0",
    "a\0b",
    " ",
    "\n",
    "\x7f",
    "\U0010ffff",
    "'; drop table",
    "%s",
    "x" * 10_000,
    "ü" * 300,
]
BLOBS = [b"{", b"\xff", b"\0", b'"\\u0000"', b'"\\ud800"', b"[" * 10_000, b"1e999", b"{}" * 2]
NUMBERS = [-1, 0, 2**31 - 1, -(2**31)]
TIMES = [
    Duration(seconds=-1),
    Duration(seconds=315_576_000_000),
    Duration(nanos=-1),
    Duration(nanos=2**31 - 1),
]
EXPECTED = {
    StatusCode.INVALID_ARGUMENT,
    StatusCode.NOT_FOUND,
    StatusCode.FAILED_PRECONDITION,
    StatusCode.ALREADY_EXISTS,
}


def hostile(field: Any) -> list[Any]:
    if field.message_type is not None:
        return TIMES if field.message_type.name == "Duration" else []
    return {field.TYPE_STRING: TEXTS, field.TYPE_BYTES: BLOBS, field.TYPE_INT32: NUMBERS}.get(
        field.type, []
    )


def with_(request: Any, field: Any, value: Any) -> Any:
    copy = type(request)()
    copy.CopyFrom(request)
    if field.message_type is not None:
        getattr(copy, field.name).CopyFrom(value)
    else:
        setattr(copy, field.name, value)
    return copy


@pytest.mark.parametrize(
    "service, name, request_", EVERY, ids=lambda each: each if isinstance(each, str) else None
)
async def test_every_field_takes_anything(
    acme: Client, service: str, name: str, request_: Any
) -> None:
    method = method_of(acme, service, name)
    for field in request_.DESCRIPTOR.fields:
        if field.name == "wait":
            continue
        for value in hostile(field):
            try:
                await acme.ask(method, with_(request_, field, value))
            except Refused as refused:
                assert refused.status in EXPECTED, (field.name, value, refused)  # noqa: PT017
                assert refused.code, (field.name, value, refused)  # noqa: PT017


@pytest.mark.parametrize("headers", [{"": "\0"}, {"x" * 10_000: "y"}, {"\0": "ü"}])
async def test_headers_of_an_event_take_anything(acme: Client, headers: dict[str, str]) -> None:
    request = pb.PublishRequest(key="e", data_json=b"{}", headers=headers)
    try:
        await acme.ask(acme.events.Publish, request)
    except Refused as refused:
        assert refused.status is StatusCode.INVALID_ARGUMENT  # noqa: PT017


@pytest.mark.parametrize("content", [b"\xff" * 100, b"\x0a\x02\xff\xff"], ids=["noise", "latin"])
async def test_what_is_no_message_is_refused(
    site: GrpcSite, acme: Client, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    raw = site.channel.unary_unary("/oncekey.v1.Workflows/Get")
    with pytest.raises(Refused, match="is not a message") as refused:
        await acme.ask(raw, content)
    assert refused.value.status is StatusCode.INVALID_ARGUMENT
    stranger = Client(site.channel, None)
    with pytest.raises(Refused) as refused:
        await stranger.ask(raw, content)
    assert refused.value.status is StatusCode.UNAUTHENTICATED
    assert caplog.text == ""


async def test_a_method_there_is_not_is_said_so(site: GrpcSite, acme: Client) -> None:
    with pytest.raises(Refused) as refused:
        await acme.ask(site.channel.unary_unary("/oncekey.v1.Workflows/Explode"), b"")
    assert refused.value.status is StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("name", ["a\0b", "x" * 10_000])
async def test_a_name_no_promise_can_have_is_not_found(acme: Client, name: str) -> None:
    for request in (
        pb.GetPromiseRequest(id=f"wf_0000000000000001:{name}"),
        pb.GetPromiseRequest(id=f"pr_0000000000000001:{name}"),
    ):
        with pytest.raises(Refused) as refused:
            await acme.ask(acme.promises.Get, request)
        assert refused.value.code == "not-found"
