"""Messages say what the JSON of the other interfaces says, in the same words."""

from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from oncekey.api.grpc import messages
from oncekey.api.grpc import oncekey_pb2 as pb
from oncekey.api.grpc.requests import (
    MAX_PAGE,
    PAGE,
    address_in,
    json_in,
    page_size_in,
    seconds_in,
    wait_in,
    word_in,
)
from oncekey.core.errors import InvalidInput
from oncekey.core.execution import (
    Entry,
    Execution,
    Promise,
    PromiseKind,
    PromiseState,
    Sort,
    Status,
    Step,
)
from oncekey.durable import shapes
from oncekey.durable.address import ById, ByKey
from oncekey.durable.engine import ControlAnswer, PublishAnswer, SettleAnswer

NOW = 1_700_000_000_123
RUNNING = Execution(7, "acme", Sort.WORKFLOW, "order", b'{"n": 1}', Status.RUNNING, 1, 1, NOW)
SUCCEEDED = RUNNING._replace(
    status=Status.SUCCEEDED, key="order-7", result=b'"done"', completed_at=NOW + 5, expires_at=NOW
)
PAUSED = RUNNING._replace(status=Status.PAUSED, result=b'{"code":"step-failed"}', forked_from=3)
RAN = Entry(1, Step.RUN, "charge", b"", False, b'"ch_1"', 2, NOW, NOW + 1)
PENDING = Promise(9, "acme", PromiseKind.PROMISE, "payment", PromiseState.PENDING, NOW)
RESOLVED = PENDING._replace(
    state=PromiseState.RESOLVED,
    execution=7,
    key="stripe:ch_1",
    key_expires_at=NOW,
    due_at=NOW,
    body=b"12345678901234567890",
    settled_by="evt_1",
    settled_at=NOW,
)
REJECTED = RESOLVED._replace(state=PromiseState.REJECTED, body=b'{"code":"declined"}')

PAIRS: list[tuple[Message, Any]] = [
    *(
        (messages.execution_message(each), shapes.shape_of_execution(each))
        for each in (RUNNING, SUCCEEDED, PAUSED)
    ),
    *(
        (messages.entry_message(4, each), shapes.shape_of_entry(4, each))
        for each in (RAN, RAN._replace(failed=True))
    ),
    *(
        (messages.promise_message(each), shapes.shape_of_promise(each))
        for each in (PENDING, RESOLVED, REJECTED)
    ),
    *(
        (messages.settle_message(each), shapes.shape_of_settle(each))
        for each in (
            SettleAnswer(RESOLVED, True, True, False),
            SettleAnswer(None, False, True, True, NOW),
        )
    ),
    (
        messages.publish_message(PublishAnswer("ev_1", 3, True, False)),
        shapes.shape_of_publish(PublishAnswer("ev_1", 3, True, False)),
    ),
    (
        messages.control_message(ControlAnswer("wf_1", "cancelled", True)),
        shapes.shape_of_control(ControlAnswer("wf_1", "cancelled", True)),
    ),
]


def told(message: Message) -> dict[str, Any]:
    """The message as JSON writes it, with what it holds as JSON put in its place."""
    shape: dict[str, Any] = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    for field, value in message.ListFields():
        if field.name.endswith("_json"):
            del shape[field.name]
            shape[field.name.removesuffix("_json")] = value
        elif field.name == "promise":
            shape["promise"] = told(value)
    return shape


def plain(shape: Any) -> Any:
    """A shape, without what it says is not there."""
    if isinstance(shape, dict):
        return {name: plain(value) for name, value in shape.items() if value is not None}
    return bytes(shape) if type(shape).__name__ == "Raw" else shape


@pytest.mark.parametrize("message, shape", PAIRS, ids=lambda value: type(value).__name__)
def test_a_message_says_what_the_shape_says(message: Message, shape: Any) -> None:
    assert told(message) == plain(shape)


@pytest.mark.parametrize("message, shape", PAIRS, ids=lambda value: type(value).__name__)
def test_a_message_has_a_field_for_every_word(message: Message, shape: Any) -> None:
    fields = {field.name.removesuffix("_json") for field in message.DESCRIPTOR.fields}
    assert set(shape) - fields == set()
    assert fields - set(shape) <= {"value", "result", "error"}


def test_a_page_is_what_fits() -> None:
    large = pb.Execution(input_json=b"x" * (900 << 10))
    assert len(list(messages.fitting([large] * 5))) == 2


def test_a_page_has_one_in_any_case() -> None:
    huge = pb.Execution(input_json=b"x" * (3 << 20))
    assert len(list(messages.fitting([huge, pb.Execution()]))) == 1


@pytest.mark.parametrize("text", [b"{}", b"12345678901234567890.10", b' ["\xc3\xbc"] '])
def test_json_is_kept_to_the_letter(text: bytes) -> None:
    assert json_in("input_json", text) == text


def test_no_json_is_null() -> None:
    assert json_in("input_json", b"") == b"null"


@pytest.mark.parametrize("text", [b"{", b"NaN", b"{} {}", b'"\xff"', b"[" * 100_000])
def test_what_is_no_json_is_refused_by_name(text: bytes) -> None:
    with pytest.raises(InvalidInput, match="input_json is not JSON"):
        json_in("input_json", text)


def test_a_length_of_time_that_is_not_said_is_none() -> None:
    assert seconds_in("timeout", pb.CreatePromiseRequest()) is None
    half = Duration(seconds=1, nanos=500_000_000)
    assert seconds_in("timeout", pb.CreatePromiseRequest(timeout=half)) == 1.5


@pytest.mark.parametrize("wrong", [Duration(), Duration(seconds=400_000_000)])
def test_what_lasts_no_time_or_too_long_is_refused(wrong: Duration) -> None:
    with pytest.raises(InvalidInput, match="timeout is not between 0 and ten years"):
        seconds_in("timeout", pb.CreatePromiseRequest(timeout=wrong))


def test_nobody_has_to_wait() -> None:
    assert wait_in(pb.GetPromiseRequest()) == 0
    assert wait_in(pb.GetExecutionRequest(wait=Duration(seconds=7))) == 7


@pytest.mark.parametrize("wrong", [Duration(seconds=-1), Duration(nanos=-1), Duration(nanos=2**30)])
def test_a_wait_that_is_no_length_of_time_is_refused(wrong: Duration) -> None:
    with pytest.raises(InvalidInput, match="wait is not a length of time"):
        wait_in(pb.GetPromiseRequest(wait=wrong))


def test_a_promise_is_named_by_id_or_key() -> None:
    assert address_in(pb.GetPromiseRequest(id="pr_1:a")) == ById("pr_1:a")
    assert address_in(pb.ResolveRequest(key="stripe:ch_1")) == ByKey("stripe:ch_1")
    with pytest.raises(InvalidInput, match="set its id or its key"):
        address_in(pb.RejectRequest())


def test_a_filter_takes_the_words_of_answers() -> None:
    assert word_in("status", "", Status) is None
    assert word_in("status", "waiting", Status) is Status.WAITING
    with pytest.raises(InvalidInput, match=r"kind 'WORKFLOW' is not one of workflow, task"):
        word_in("kind", "WORKFLOW", Sort)


def test_a_page_size_is_bounded() -> None:
    assert [page_size_in(asked) for asked in (0, 7, 10**6)] == [PAGE, 7, MAX_PAGE]
    with pytest.raises(InvalidInput, match="page_size -1 is negative"):
        page_size_in(-1)
