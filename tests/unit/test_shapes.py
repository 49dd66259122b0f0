"""Durable work as JSON: which members there are, and that stored JSON is not touched."""

from __future__ import annotations

import msgspec
import pytest

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
from oncekey.core.work import Event
from oncekey.durable.engine import ControlAnswer, PromiseAnswer, PublishAnswer, SettleAnswer
from oncekey.durable.shapes import (
    json_of,
    shape_of_control,
    shape_of_entry,
    shape_of_event,
    shape_of_execution,
    shape_of_new_promise,
    shape_of_promise,
    shape_of_publish,
    shape_of_settle,
    time_of,
)

EXECUTION = Execution(
    id=0x1F,
    tenant="acme",
    sort=Sort.WORKFLOW,
    name="process_order",
    input=b'{"a":1}',
    status=Status.RUNNING,
    owner=1,
    fence=1,
    created_at=1_700_000_000_001,
)
PROMISE = Promise(
    id=0x2A,
    tenant="acme",
    kind=PromiseKind.PROMISE,
    name="payment",
    state=PromiseState.PENDING,
    created_at=1_700_000_000_000,
)


def seen(shape: object) -> object:
    return msgspec.json.decode(json_of(shape))


def test_a_running_execution_has_neither_a_result_nor_an_error() -> None:
    assert seen(shape_of_execution(EXECUTION)) == {
        "id": "wf_000000000000001f",
        "kind": "workflow",
        "name": "process_order",
        "status": "running",
        "key": None,
        "input": {"a": 1},
        "created_at": "2023-11-14T22:13:20.001Z",
        "completed_at": None,
        "expires_at": None,
        "forked_from": None,
    }


@pytest.mark.parametrize(
    "status, member",
    [
        (Status.READY, None),
        (Status.WAITING, None),
        (Status.SUCCEEDED, "result"),
        (Status.FAILED, "error"),
        (Status.CANCELLED, "error"),
        (Status.PAUSED, "error"),
    ],
)
def test_what_an_execution_ended_with_has_the_name_of_its_end(
    status: Status, member: str | None
) -> None:
    shape = shape_of_execution(EXECUTION._replace(status=status, result=b'{"x":[1.50]}'))
    assert [name for name in ("result", "error") if name in shape] == ([member] if member else [])
    assert (b'{"x":[1.50]}' in json_of(shape)) is bool(member)


def test_a_fork_names_the_execution_it_comes_from_in_its_own_kind() -> None:
    shape = shape_of_execution(EXECUTION._replace(sort=Sort.TASK, forked_from=2))
    assert (shape["id"], shape["kind"]) == ("tk_000000000000001f", "task")
    assert shape["forked_from"] == "tk_0000000000000002"


@pytest.mark.parametrize("failed, member", [(False, "value"), (True, "error")])
def test_a_journal_entry_has_its_number_and_a_value_or_an_error(failed: bool, member: str) -> None:
    entry = Entry(7, Step.RUN, "charge", b"", failed, b'"ch_1"', 3, 1000, 2500)
    assert seen(shape_of_entry(1, entry)) == {
        "step": 1,
        "kind": "run",
        "name": "charge",
        "failed": failed,
        member: "ch_1",
        "attempts": 3,
        "started_at": "1970-01-01T00:00:01.000Z",
        "at": "1970-01-01T00:00:02.500Z",
    }


def test_a_pending_promise_without_a_workflow() -> None:
    assert seen(shape_of_promise(PROMISE._replace(key="stripe:ch_1", key_expires_at=0))) == {
        "id": "pr_000000000000002a:payment",
        "name": "payment",
        "state": "pending",
        "key": "stripe:ch_1",
        "key_expires_at": "1970-01-01T00:00:00.000Z",
        "timeout_at": None,
        "resolved_by": None,
        "created_at": "2023-11-14T22:13:20.000Z",
        "settled_at": None,
        "workflow_id": None,
    }


@pytest.mark.parametrize(
    "state, member",
    [
        (PromiseState.RESOLVED, "value"),
        (PromiseState.REJECTED, "error"),
        (PromiseState.TIMED_OUT, None),
        (PromiseState.CANCELLED, None),
    ],
)
def test_a_settled_promise_of_a_workflow(state: PromiseState, member: str | None) -> None:
    promise = PROMISE._replace(state=state, execution=0x1F, body=b"7", settled_by="evt_1")
    shape = shape_of_promise(promise)
    assert shape["workflow_id"] == "wf_000000000000001f"
    assert shape["id"] == "wf_000000000000001f:payment"
    assert (shape["state"], shape["resolved_by"]) == (state.name.lower(), "evt_1")
    assert [name for name in ("value", "error") if name in shape] == ([member] if member else [])


def test_a_token_is_told_only_with_the_answer_that_has_it() -> None:
    assert "token" not in shape_of_new_promise(PromiseAnswer(PROMISE))
    assert shape_of_new_promise(PromiseAnswer(PROMISE, "ct_x"))["token"] == "ct_x"


def test_a_parked_resolution_has_no_promise_yet() -> None:
    assert seen(shape_of_settle(SettleAnswer(None, False, True, True, 1))) == {
        "promise": None,
        "already_resolved": False,
        "idempotency_key_used": True,
        "idempotency_key_new": True,
        "resolved_by": None,
        "parked_until": "1970-01-01T00:00:00.001Z",
    }


def test_a_resolution_shows_the_promise_and_who_resolved_it() -> None:
    promise = PROMISE._replace(state=PromiseState.RESOLVED, body=b"null", settled_by="evt_1")
    shape = shape_of_settle(SettleAnswer(promise, True, True, False))
    assert shape["promise"] == shape_of_promise(promise)
    assert (shape["already_resolved"], shape["resolved_by"]) == (True, "evt_1")
    assert shape["idempotency_key_new"] is False


def test_answers_to_publishing_and_to_control() -> None:
    assert shape_of_publish(PublishAnswer("ev_1", 2, True, False)) == {
        "event_id": "ev_1",
        "matched": 2,
        "idempotency_key_used": True,
        "idempotency_key_new": False,
    }
    assert shape_of_control(ControlAnswer("wf_1", "cancelled", True)) == {
        "workflow_id": "wf_1",
        "status": "cancelled",
        "idempotency_replayed": True,
    }


def test_an_event() -> None:
    event = Event(255, "acme", "shipment:created", b'{"id":1}', b"{}", 0, 1)
    assert seen(shape_of_event(event)) == {
        "id": "ev_00000000000000ff",
        "key": "shipment:created",
        "data": {"id": 1},
        "headers": {},
        "created_at": "1970-01-01T00:00:00.000Z",
        "expires_at": "1970-01-01T00:00:00.001Z",
    }


def test_a_value_that_was_not_stored_is_null() -> None:
    assert seen(shape_of_execution(EXECUTION._replace(status=Status.FAILED)))["error"] is None  # type: ignore[index]


@pytest.mark.parametrize("milliseconds", [0, 1, 999, 1_700_000_000_999, 4_102_444_800_123])
def test_times_keep_their_milliseconds(milliseconds: int) -> None:
    assert str(time_of(milliseconds)).endswith(f".{milliseconds % 1000:03}Z")
