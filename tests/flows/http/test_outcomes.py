"""Which outcomes are everyone's answer from then on, and which let a retry run again."""

import pytest

from tests.fixtures.http.service import PATIENCE
from tests.fixtures.http.site import Case, assert_problem, assert_replay


@pytest.mark.parametrize("status", [200, 202, 302, 400, 404, 410, 422, 451])
def test_final_answers_are_kept(case: Case, status: int) -> None:
    path = f"/plain/status?status={status}"
    first = case.send(path)

    assert first.status_code == status
    assert_replay(case.send(path), first)
    assert case.runs == 1


@pytest.mark.parametrize("status", [401, 403, 408, 409, 425, 429, 500, 503])
def test_answers_that_a_retry_may_mend_are_not(case: Case, status: int) -> None:
    path = f"/plain/status?status={status}"
    answers = [case.send(path) for _ in range(2)]

    assert [each.json()["run"] for each in answers] == [1, 2]
    assert [each.status_code for each in answers] == [status, status]
    assert answers[0].headers["x-operation-id"]
    assert "idempotent-replayed" not in answers[1].headers


def test_server_errors_are_kept_where_the_route_says_so(case: Case) -> None:
    first = case.send("/errors/status?status=503")

    assert_replay(case.send("/errors/status?status=503"), first)
    assert case.send("/errors/status?status=429", key=f"{case.key}.2").status_code == 429
    assert case.send("/errors/status?status=429", key=f"{case.key}.2").json()["run"] == 3


def test_a_handler_that_raises_runs_again(case: Case) -> None:
    assert case.send("/plain/raise").status_code == 500
    second = case.send("/plain/raise")
    assert second.json() == {"run": 2}
    assert_replay(case.send("/plain/raise"), second)


def test_a_terminal_error_is_final(case: Case) -> None:
    first = case.send("/plain/terminal")

    problem = assert_problem(first, 402, "terminal-error")
    assert problem["detail"] == "the card is stolen"
    assert_replay(case.send("/plain/terminal"), first)
    assert case.runs == 1


def test_a_terminal_error_without_a_key_is_a_failure_like_any_other(case: Case) -> None:
    assert case.send("/plain/terminal", key=None).status_code == 500
    assert case.send("/plain/terminal", key=None).status_code == 500
    assert case.runs == 2


def test_refusals_never_take_the_place_of_the_record(case: Case) -> None:
    first = case.start("/plain/wait")
    case.gate.await_entry()
    assert case.send("/plain/wait").status_code == 409
    assert case.send("/plain/wait", json={"amount": 2}).status_code == 422
    case.gate.open.set()
    kept = first.result()

    for _ in range(2):
        assert case.send("/plain/wait", json={"amount": 2}).status_code == 422
        assert_replay(case.send("/plain/wait"), kept)
    assert case.runs == 1


def test_a_client_that_goes_away_does_not_lose_the_outcome(case: Case) -> None:
    body = b'{"amount": 1}'
    key = f"Idempotency-Key: {case.key}".encode()
    with case.site.connect() as line:
        line.sendall(case.raw("/attach/wait", key, body=body))
        case.gate.await_entry()
    case.gate.open.set()
    assert case.gate.left.wait(PATIENCE)

    answer = case.send("/attach/wait", content=body, headers={"Content-Type": "application/json"})

    assert answer.status_code == 201
    assert answer.headers["idempotent-replayed"] == "true"
    assert case.runs == 1
