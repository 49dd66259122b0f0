"""The table of answers: what a request gets for its key, row by row."""

import json

import httpx
import pytest

from tests.fixtures.http.site import Case, assert_problem, assert_replay, lapse

UNSAFE = ["POST", "PUT", "PATCH", "DELETE"]


def test_a_request_without_a_key_is_handled_normally(case: Case) -> None:
    first, second = case.send("/plain/order", key=None), case.send("/plain/order", key=None)

    assert [first.json()["run"], second.json()["run"]] == [1, 2]
    assert "x-operation-id" not in first.headers
    assert "idempotency-stored" not in first.headers


def test_a_missing_key_is_refused_where_one_is_required(case: Case) -> None:
    assert_problem(case.send("/required/order", key=None), 400, "idempotency-key-missing")
    assert case.runs == 0


def test_a_malformed_key_is_refused_by_the_name_of_the_rule(case: Case) -> None:
    answer = case.send("/plain/order", key="not a key")

    problem = assert_problem(answer, 400, "idempotency-key-invalid")
    assert "' '" in problem["detail"]
    assert case.runs == 0


def test_a_key_is_refused_where_none_may_be(case: Case) -> None:
    assert_problem(case.send("/prohibited/order"), 400, "idempotency-key-prohibited")
    assert case.send("/prohibited/order", key=None).status_code == 201


@pytest.mark.parametrize("key", ["a-key", "not a key", "t-forged:key"])
def test_a_key_is_not_looked_at_where_it_is_ignored(case: Case, key: str) -> None:
    first, second = case.send("/ignored/order", key=key), case.send("/ignored/order", key=key)
    assert [first.status_code, second.status_code] == [201, 201]
    assert case.runs == 2
    assert "idempotent-replayed" not in second.headers
    assert "x-operation-id" not in first.headers


@pytest.mark.parametrize("method", UNSAFE)
def test_the_first_request_gets_the_handlers_answer_and_its_operation(
    case: Case, method: str
) -> None:
    answer = case.send("/plain/order", method)

    assert answer.status_code == 201
    assert answer.json() == {"run": 1, "case": case.name}
    assert answer.headers["location"] == "/orders/1"
    assert answer.headers["x-operation-id"].startswith("op_")
    assert "idempotent-replayed" not in answer.headers


@pytest.mark.parametrize("method", UNSAFE)
def test_a_finished_request_is_replayed(case: Case, method: str) -> None:
    first = case.send("/plain/order", method, headers={"X-Request-Id": "req-1"})
    second = case.send("/plain/order", method, headers={"X-Request-Id": "req-2"})

    assert_replay(second, first)
    assert second.headers["original-request-id"] == "req-1"
    assert case.runs == 1


def test_a_request_in_flight_is_a_conflict(case: Case) -> None:
    first = case.start("/plain/wait")
    case.gate.await_entry()

    second = case.send("/plain/wait")
    case.gate.open.set()

    problem = assert_problem(second, 409, "request-in-progress")
    assert int(second.headers["retry-after"]) > 0
    assert problem["operation_id"] == first.result().headers["x-operation-id"]
    assert_replay(case.send("/plain/wait"), first.result())


def test_requests_in_flight_attach_and_get_the_answer(case: Case) -> None:
    crowd = [case.start("/attach/wait") for _ in range(8)]
    case.gate.await_entry()
    case.gate.open.set()

    answers = [each.result() for each in crowd]

    firsts = [each for each in answers if "idempotent-replayed" not in each.headers]
    assert len(firsts) == 1
    for answer in answers:
        if answer is not firsts[0]:
            assert_replay(answer, firsts[0])
    assert case.runs == 1


def test_an_attached_request_is_a_conflict_after_all_when_it_waits_too_long(case: Case) -> None:
    first = case.start("/impatient/wait")
    case.gate.await_entry()

    second = case.send("/impatient/wait")
    case.gate.open.set()

    assert_problem(second, 409, "request-in-progress")
    assert first.result().status_code == 201


def test_another_request_with_a_used_key_is_refused(case: Case) -> None:
    first = case.send("/plain/order", json={"amount": 1})
    other = case.send("/plain/order", json={"amount": 2})

    problem = assert_problem(other, 422, "idempotency-key-reused")
    assert "operation_id" not in problem
    assert first.headers["x-operation-id"] not in str(other.headers)
    assert_replay(case.send("/plain/order", json={"amount": 1}), first)


@pytest.mark.parametrize("rule", ["plain", "attach"])
def test_another_request_with_a_key_in_flight_learns_nothing_of_the_first(
    case: Case, rule: str
) -> None:
    first = case.start(f"/{rule}/wait", json={"amount": 1})
    case.gate.await_entry()

    other = case.send(f"/{rule}/wait", json={"amount": 2})
    case.gate.open.set()

    assert_problem(other, 422, "idempotency-key-reused")
    assert first.result().headers["x-operation-id"] not in f"{other.headers}{other.text}"


def test_a_lapsed_request_is_of_unknown_outcome_where_takeover_is_refused(case: Case) -> None:
    first = case.start("/refuse/wait")
    case.gate.await_entry()
    lapse(case)

    second = case.send("/refuse/wait")
    case.gate.open.set()

    problem = assert_problem(second, 409, "outcome-unknown")
    assert problem["operation_id"]
    first.result()
    assert case.runs == 1


def test_a_lapsed_request_is_taken_over_and_the_late_one_gets_the_winners_answer(
    case: Case,
) -> None:
    late = case.start("/plain/wait")
    case.gate.await_entry()
    lapse(case)
    winner = case.start("/plain/wait")
    case.gate.await_entry()
    case.gate.open.set()

    answers = [late.result(), winner.result()]

    assert case.runs == 2
    (first,) = [each for each in answers if "idempotent-replayed" not in each.headers]
    (other,) = [each for each in answers if each is not first]
    assert_replay(other, first)


@pytest.mark.usefixtures("claims_cut")
def test_nothing_runs_while_the_store_is_away(case: Case) -> None:
    answer = case.send("/plain/order")

    problem = assert_problem(answer, 503, "ledger-unavailable")
    assert int(answer.headers["retry-after"]) > 0
    assert "operation_id" not in problem
    assert case.runs == 0
    assert case.send("/plain/order", key=None).status_code == 201


@pytest.mark.usefixtures("claims_cut")
def test_a_route_that_fails_open_runs_without_protection_and_is_counted(case: Case) -> None:
    before = unprotected(case)

    body = {"amount": 5}
    answers = [case.send("/open/echo", json=body) for _ in range(2)]

    assert [each.json()["run"] for each in answers] == [1, 2]
    assert answers[0].json()["size"] == len(httpx.Request("POST", "http://x", json=body).content)
    assert unprotected(case) == before + 2


def unprotected(case: Case) -> int:
    count: int = case.site.ledger.observe.counts["unprotected"]  # type: ignore[attr-defined]
    return count


@pytest.mark.usefixtures("outcomes_cut")
def test_an_outcome_that_cannot_be_stored_does_not_leave(case: Case) -> None:
    answer = case.send("/plain/order")

    problem = assert_problem(answer, 503, "ledger-unavailable")
    assert problem["operation_id"] == answer.headers["x-operation-id"]
    assert "ran" in problem["detail"]
    assert json.dumps(case.name) not in answer.text
    assert case.runs == 1


@pytest.mark.usefixtures("outcomes_cut")
def test_a_stream_does_not_leave_when_the_store_cannot_know_of_it(case: Case) -> None:
    assert_problem(case.send("/plain/stream"), 503, "ledger-unavailable")
