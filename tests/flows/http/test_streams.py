"""Answers that leave while they are made, when something goes wrong on the way."""

import gc
import time

import httpx
import pytest

from tests.fixtures.http.service import EVENTS, PATIENCE, Gate
from tests.fixtures.http.site import Case, assert_problem, assert_replay, lapse


def test_a_late_stream_gives_way_to_the_winners_answer(
    case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    late = case.start("/plain/slow_stream")
    case.gate.await_entry()
    lapse(case)
    winner = case.send("/plain/slow_stream")
    case.gate.open.set()

    problem = assert_problem(late.result(), 409, "outcome-not-kept")
    assert winner.content == b"one two three"
    assert problem["operation_id"] == winner.headers["x-operation-id"]
    assert "after response already completed" not in caplog.text


def test_an_endless_stream_ends_when_its_client_goes_away(case: Case) -> None:
    if case.site.adapter.name == "asgi":
        pytest.skip("the sample app without a framework never looks whether its client is there")
    with case.site.connect() as line:
        line.sendall(case.raw("/plain/endless", f"Idempotency-Key: {case.key}".encode()))
        while b"tick" not in line.recv(1 << 16):
            pass

    assert closes(case.gate)
    answer = case.send(
        "/plain/endless", content=b"{}", headers={"Content-Type": "application/json"}
    )
    assert_problem(answer, 409, "outcome-not-kept")


def closes(gate: Gate) -> bool:
    """Whether the stream is closed; some frameworks leave that to the collection of garbage."""
    deadline = time.monotonic() + PATIENCE
    while not gate.closed.wait(0.05) and time.monotonic() < deadline:
        gc.collect()
    return gate.closed.is_set()


def test_events_are_kept_though_their_client_went_away(case: Case) -> None:
    key = f"Idempotency-Key: {case.key}".encode()
    with case.site.connect() as line:
        line.sendall(case.raw("/events/slow_events", key))
        while b"one" not in line.recv(1 << 16):
            pass
    case.gate.open.set()

    answer = settled(case, "/events/slow_events")

    assert answer.content == b"".join(EVENTS)
    assert answer.headers["idempotent-replayed"] == "true"
    assert case.runs == 1


def settled(case: Case, path: str) -> httpx.Response:
    """What a retry gets as soon as the first request is concluded."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        answer = case.send(path, content=b"{}", headers={"Content-Type": "application/json"})
        if answer.status_code != 409:
            return answer
    raise AssertionError(answer.text)


@pytest.mark.parametrize("path", ["/events/broken_events", "/plain/broken_stream"])
def test_an_answer_that_breaks_off_is_not_mistaken_for_a_whole_one(case: Case, path: str) -> None:
    request = case.raw(path, f"Idempotency-Key: {case.key}".encode())
    with case.site.connect() as line:
        line.sendall(request)
        received = b""
        while chunk := line.recv(1 << 16):
            received += chunk

    assert b"one" in received
    assert b"0\r\n\r\n" not in received


def test_events_that_broke_off_run_again(case: Case) -> None:
    request = case.raw("/events/broken_events", f"Idempotency-Key: {case.key}".encode())
    with case.site.connect() as line:
        line.sendall(request)
        while line.recv(1 << 16):
            pass

    second = settled(case, "/events/broken_events")

    assert second.content == b"".join(EVENTS)
    assert case.runs == 2
    assert_replay(settled(case, "/events/broken_events"), second)
