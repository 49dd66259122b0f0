"""Which gRPC status an error has, and what of it is told in metadata a client will take."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote

import pytest
from grpc import StatusCode

from oncekey.api.grpc import statuses
from oncekey.api.grpc.statuses import codes, fault, refusal_of, unauthenticated
from oncekey.core import errors
from oncekey.wire import problem


def kinds(kind: type[errors.OnceKeyError] = errors.OnceKeyError) -> Iterator[str]:
    yield kind.code
    for each in kind.__subclasses__():
        if each.__module__ == errors.__name__:
            yield from kinds(each)


def test_every_error_has_its_status() -> None:
    assert set(kinds()) - set(codes()) == set()


def test_a_status_belongs_to_an_error_or_a_problem() -> None:
    assert set(codes()) - set(kinds()) - set(problem.codes()) == set()


@pytest.mark.parametrize(
    "error, status",
    [
        (errors.InvalidInput(), StatusCode.INVALID_ARGUMENT),
        (errors.PayloadTooLarge(), StatusCode.INVALID_ARGUMENT),
        (errors.NotFound(), StatusCode.NOT_FOUND),
        (errors.NameUnknown(), StatusCode.NOT_FOUND),
        (errors.KeyConflict(), StatusCode.ALREADY_EXISTS),
        (errors.KeyReused(), StatusCode.FAILED_PRECONDITION),
        (errors.ControlRefused(), StatusCode.FAILED_PRECONDITION),
        (errors.InProgress(), StatusCode.ABORTED),
        (errors.StoreUnavailable(), StatusCode.UNAVAILABLE),
        (errors.LedgerClosed(), StatusCode.UNAVAILABLE),
    ],
    ids=lambda value: getattr(value, "code", None),
)
def test_an_error_becomes_a_status_and_its_code(
    error: errors.OnceKeyError, status: StatusCode
) -> None:
    refusal = refusal_of(error)
    assert refusal.status is status
    assert dict(refusal.trailers)["oncekey-code"] == error.code


def test_only_what_may_be_tried_again_has_a_status_that_clients_try_again() -> None:
    retried = {StatusCode.UNAVAILABLE, StatusCode.ABORTED}
    final = [errors.KeyReused, errors.KeyConflict, errors.ControlRefused, errors.PromiseOver]
    assert {refusal_of(kind()).status for kind in final} & retried == set()


def test_what_is_anothers_is_told_as_what_is_unknown() -> None:
    assert refusal_of(errors.NotFound("wf_1 is of acme")) == refusal_of(errors.NotFound())


def test_what_a_store_says_stays_here() -> None:
    refusal = refusal_of(errors.StoreUnavailable("connection to db.internal refused"))
    assert "db.internal" not in refusal.message
    assert "again" in refusal.message


def test_a_fault_and_a_stranger_have_a_code_too() -> None:
    assert dict(fault().trailers) == {"oncekey-code": "internal-error"}
    assert unauthenticated().status is StatusCode.UNAUTHENTICATED
    assert dict(unauthenticated().trailers) == {"oncekey-code": "unauthorized"}


def test_the_state_of_a_promise_that_is_over_is_told() -> None:
    refusal = refusal_of(errors.PromiseOver(state="timed_out"))
    assert dict(refusal.trailers)["promise-state"] == "timed_out"


def test_an_id_in_metadata_is_ascii_and_can_be_read_back() -> None:
    told = dict(refusal_of(errors.KeyConflict(existing_promise_id="pr_1:zahlung-ü 100%")).trailers)
    assert told["existing-promise-id"] == "pr_1:zahlung-%C3%BC 100%25"
    assert unquote(told["existing-promise-id"]) == "pr_1:zahlung-ü 100%"


def test_an_id_too_long_for_metadata_is_left_out_whole() -> None:
    refusal = refusal_of(errors.KeyConflict("taken", existing_promise_id="ü" * 2000))
    assert dict(refusal.trailers) == {"oncekey-code": "key-conflict"}


def test_a_message_is_cut_to_what_a_client_takes() -> None:
    assert len(refusal_of(errors.InvalidInput("ü" * 5000)).message.encode()) <= 2048 // 3
    assert refusal_of(errors.InvalidInput("x" * 2000)).message == "x" * 2000


def test_the_work_of_cutting_does_not_grow_with_the_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A caller may have sent two megabytes of what is repeated in it."""
    worked: list[int] = []

    def counted(text: str, **options: Any) -> str:
        worked.append(len(text))
        return quote(text, **options)

    monkeypatch.setattr(statuses, "quote", counted)
    refusal_of(errors.InvalidInput("ü" * 2_000_000))
    assert 0 < sum(worked) < 20_000
