"""Requests that are remembered with their answers: few, and small."""

from oncekey.core.model import NO_FINGERPRINT, Kind, Outcome, Record, Ref
from oncekey.core.scope import Scope
from oncekey.wire.memo import LONGEST_ANSWER, MOST, Memo, Remembered
from oncekey.wire.problem import Response


def remembered(body: bytes = b"") -> Remembered:
    ref = Ref(Scope("t-acme:shop:user:alice", "POST /orders"), "k")
    outcome = Outcome(Kind.RESPONSE, 200, (), body)
    record = Record(1, ref, NO_FINGERPRINT, 0, 1, "", "interactive", 0, 1, 1, outcome, None)
    return Remembered(ref.digest, record, Response(200, (), body))


def test_the_oldest_goes_first() -> None:
    memo = Memo()
    for number in range(MOST + 1):
        memo.put(number, remembered())
    assert memo.get(0) is None
    assert memo.get(1) is not None
    assert memo.get(MOST) is not None


def test_an_answer_that_is_large_is_left_to_the_ledger() -> None:
    """It counts the bytes that it holds; here they would be held beyond that."""
    memo = Memo()
    memo.put("small", remembered(b"x" * LONGEST_ANSWER))
    memo.put("large", remembered(b"x" * (LONGEST_ANSWER + 1)))
    assert memo.get("small") is not None
    assert memo.get("large") is None


def test_an_answer_that_has_become_large_is_not_the_old_one() -> None:
    memo = Memo()
    memo.put("k", remembered())
    memo.put("k", remembered(b"x" * (LONGEST_ANSWER + 1)))
    assert memo.get("k") is None
