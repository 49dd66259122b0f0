"""What each answer means for a caller."""

import json
from typing import Any

import pytest

from oncekey.client import STRIPE, Answer, Dialect, errors
from oncekey.client.answer import Kept
from oncekey.client.verdict import Again, Known, Stop, verdict_of
from oncekey.wire.problem import codes, problem

NOW = 1_700_000_000.0
ONCEKEY = Dialect()


def answer(status: int, body: Any = None, **headers: str) -> Answer:
    lines = [(name.replace("_", "-"), value) for name, value in headers.items()]
    if body is not None:
        lines.append(("content-type", "application/json"))
    content = b"" if body is None else json.dumps(body).encode()
    return Answer(Kept(status, tuple(lines), content), None)


def of_ours(code: str) -> Answer:
    status, headers, body = problem(code, "a reason")
    lines = tuple((name.decode(), value.decode()) for name, value in headers)
    return Answer(Kept(status, lines, body), None)


@pytest.mark.parametrize("status", [200, 201, 204, 303, 400, 404, 410, 413, 418, 422])
def test_what_the_application_answers_is_known(status: int) -> None:
    assert verdict_of(answer(status, {"ok": 1}), ONCEKEY, NOW) == Known()


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_may_change_is_asked_for_again(status: int) -> None:
    assert verdict_of(answer(status), ONCEKEY, NOW) == Again(f"status {status}")
    later = verdict_of(answer(status, retry_after="7"), ONCEKEY, NOW)
    assert later == Again(f"status {status}", 7.0)


def test_a_stored_failure_is_known() -> None:
    assert verdict_of(answer(500, idempotent_replayed="true"), ONCEKEY, NOW) == Known()
    assert verdict_of(answer(503, idempotent_replayed="true"), STRIPE, NOW) == Known()


EXPECTED = {
    "request-in-progress": Again("in progress", 1.0, running=True),
    "claim-lost": Again("in progress", 0.0, running=True),
    "outcome-unknown": Stop(errors.OutcomeUnknown, final=False),
    "outcome-not-kept": Stop(errors.OutcomeNotKept, final=True),
    "idempotency-key-reused": Stop(errors.KeyReused, final=True),
    "idempotency-key-missing": Stop(errors.KeyRefused, final=False),
    "idempotency-key-invalid": Stop(errors.KeyRefused, final=False),
    "idempotency-key-prohibited": Stop(errors.KeyRefused, final=False),
    "unauthorized": Stop(errors.CredentialsRefused, final=False),
    "ledger-unavailable": Again("status 503", 1.0),
    "upstream-unreachable": Again("status 502", 1.0),
    "upstream-uncertain": Again("status 502"),
    "upstream-timeout": Again("status 504"),
    "identity-unavailable": Again("status 503", 1.0),
    "request-too-large": Known(),
    "not-found": Known(),
    "control-refused": Known(),
    "terminal-error": Known(),
}


@pytest.mark.parametrize("code", EXPECTED)
def test_our_own_problems(code: str) -> None:
    assert code in codes()
    assert verdict_of(of_ours(code), ONCEKEY, NOW) == EXPECTED[code]


def test_no_problem_of_ours_breaks_a_caller() -> None:
    for code in codes():
        assert verdict_of(of_ours(code), ONCEKEY, NOW) is not None


def test_a_conflict_of_the_application_is_its_answer() -> None:
    conflict = answer(409, {"error": "shipped already"})
    assert verdict_of(conflict, ONCEKEY, NOW) == Known()
    assert verdict_of(conflict, STRIPE, NOW) == Again("in progress", None, running=True)
    patient = answer(409, retry_after="2")
    assert verdict_of(patient, ONCEKEY, NOW) == Again("in progress", 2.0, running=True)


def test_stripe() -> None:
    in_use = answer(409, {"error": {"type": "x", "code": "idempotency_key_in_use"}})
    assert isinstance(verdict_of(in_use, STRIPE, NOW), Again)
    other = answer(400, {"error": {"type": "idempotency_error", "message": "Keys for…"}})
    assert verdict_of(other, STRIPE, NOW) == Stop(errors.KeyReused, final=True)
    declined = answer(402, {"error": {"type": "card_error", "code": "card_declined"}})
    assert verdict_of(declined, STRIPE, NOW) == Known()
    told = answer(500, stripe_should_retry="false")
    assert verdict_of(told, STRIPE, NOW) == Known()
    assert verdict_of(told, ONCEKEY, NOW) == Again("status 500")
    again = answer(400, stripe_should_retry="true")
    assert verdict_of(again, STRIPE, NOW) == Again("status 400")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"type": 7}', b'{"error": "text"}', b"[" * 50_000, b"\xff"]
)
def test_whatever_the_body_holds(body: bytes) -> None:
    odd = Answer(Kept(409, (("content-type", "application/problem+json"),), body), None)
    assert verdict_of(odd, ONCEKEY, NOW) == Known()
    assert odd.detail == ""
