"""Answers of every shape: first as the handler gives them, then replayed byte for byte."""

import pytest

from tests.fixtures.http.service import BINARY, EVENTS, LARGE
from tests.fixtures.http.site import Case, assert_problem, assert_replay


def test_an_empty_answer(case: Case) -> None:
    first = case.send("/plain/empty")

    assert (first.status_code, first.content) == (204, b"")
    assert "content-length" not in first.headers
    assert_replay(case.send("/plain/empty"), first)
    assert case.runs == 1


def test_a_binary_answer(case: Case) -> None:
    first = case.send("/plain/binary")

    assert first.content == BINARY
    assert_replay(case.send("/plain/binary"), first)


def test_repeated_headers_stay_and_cookies_belong_to_the_first_answer_only(case: Case) -> None:
    first, second = case.send("/plain/headers"), case.send("/plain/headers")

    # Django has one line of each header, with all its values.
    many = ["one, two, one"] if "django" in case.site.adapter.name else ["one", "two", "one"]
    assert first.headers.get_list("x-many") == many
    assert first.headers.get_list("set-cookie") == ["a=1; Path=/", "b=2; Path=/"]
    assert second.headers.get_list("x-many") == many
    assert "set-cookie" not in second.headers
    assert_replay(second, first)


def test_headers_that_the_route_drops_are_not_kept(case: Case) -> None:
    first, second = case.send("/drop/order"), case.send("/drop/order")

    assert first.headers["x-secret"] == "s3cret"
    assert "x-secret" not in second.headers
    assert second.content == first.content


@pytest.mark.parametrize(
    "path, body",
    [
        ("/plain/large", LARGE),
        ("/small/binary", BINARY),
        ("/plain/stream", b"one two three"),
        ("/plain/events", b"".join(EVENTS)),
    ],
)
def test_an_answer_that_cannot_be_kept_passes_and_never_runs_twice(
    case: Case, path: str, body: bytes
) -> None:
    first = case.send(path)

    assert first.status_code == 200
    assert first.content == body
    assert first.headers["idempotency-stored"] == "false"
    problem = assert_problem(case.send(path), 409, "outcome-not-kept")
    assert problem["operation_id"] == first.headers["x-operation-id"]
    assert case.runs == 1


@pytest.mark.parametrize("path", ["/plain/stream", "/plain/large", "/plain/events"])
def test_without_a_key_the_same_answers_are_untouched(case: Case, path: str) -> None:
    first, second = case.send(path, key=None), case.send(path, key=None)

    assert first.content == second.content
    assert "idempotency-stored" not in first.headers
    assert case.runs == 2


def test_a_stream_leaves_while_it_is_made(case: Case) -> None:
    arrived = []
    with case.stream("/plain/drip") as answer:
        chunks = answer.iter_raw()
        while b"second" not in b"".join(arrived):
            arrived.append(next(chunks))
        case.gate.open.set()
        arrived += chunks

    assert b"".join(arrived) == b"first second last"
    assert answer.headers["idempotency-stored"] == "false"


def test_events_are_kept_where_the_route_says_so(case: Case) -> None:
    first = case.send("/events/events")

    assert first.content == b"".join(EVENTS)
    assert "idempotency-stored" not in first.headers
    assert_replay(case.send("/events/events"), first)
    assert case.runs == 1


def test_more_events_than_may_be_kept_pass_and_are_not_kept(case: Case) -> None:
    first = case.send("/events/flood")

    assert len(first.content) == 300 * 4104
    assert_problem(case.send("/events/flood"), 409, "outcome-not-kept")
    assert case.runs == 1


def test_the_handler_sees_its_claim(case: Case) -> None:
    answer = case.send("/plain/claim")

    assert answer.json() == {"operation_id": answer.headers["x-operation-id"]}
    assert case.send("/plain/claim", key=None).json() == {"operation_id": None}
