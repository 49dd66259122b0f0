"""What somebody outside rejects a promise with, as a failure."""

from typing import Any

import pytest

from oncekey.durable.failure import Failure, decode_failure, encode_failure, failure_given


@pytest.mark.parametrize(
    "reason, failure",
    [
        (None, Failure("rejected", "the promise was rejected")),
        ("declined", Failure("rejected", "declined")),
        ({"code": "declined", "message": "no"}, Failure("declined", "no")),
        (
            {"code": "declined", "message": "no", "data": [1], "status": 402},
            Failure("declined", "no", [1], 402),
        ),
        (
            {"code": "declined", "message": "no", "status": "x"},
            Failure(
                "rejected",
                "the promise was rejected",
                {"code": "declined", "message": "no", "status": "x"},
            ),
        ),
        ({"message": "no", "more": 1}, Failure("rejected", "no", {"message": "no", "more": 1})),
        ([1, 2], Failure("rejected", "the promise was rejected", [1, 2])),
        (7, Failure("rejected", "the promise was rejected", 7)),
    ],
)
def test_any_json_becomes_a_failure_that_can_be_read_again(reason: Any, failure: Failure) -> None:
    assert failure_given(reason) == failure
    assert decode_failure(encode_failure(failure)) == failure
