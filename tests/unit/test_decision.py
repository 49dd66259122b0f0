"""The whole table of what is decided about a known key."""

from itertools import product
from typing import Literal, get_args

import pytest

from oncekey.core.decision import Busy, Mismatch, Renew, Replay, TakeOver, Unknown, Verdict, decide
from oncekey.core.model import Kind, Operation, Outcome, Record, Ref, Takeover
from oncekey.core.scope import Scope

NOW = 1000
REF = Ref(Scope("t-a:b:user:c", "POST /orders"), "k")

Holder = Literal["settled", "alive", "lapsed"]
CASES = list(product(get_args(Holder), [True, False], [NOW + 1, NOW, NOW - 1], get_args(Takeover)))


def record(holder: Holder, expires_at: int) -> Record:
    outcome = Outcome(Kind.RESPONSE, 200) if holder == "settled" else None
    return Record(1, REF, b"f" * 16, 1, 1, "", "interactive", 0, expires_at, None, outcome)


def expected(holder: Holder, same: bool, expired: bool, takeover: Takeover) -> type[Verdict]:
    """The table of the design, row by row."""
    if expired and holder != "alive":
        return Renew
    if not same:
        return Mismatch
    if holder == "settled":
        return Replay
    if holder == "alive":
        return Busy
    return Unknown if takeover == "refuse" else TakeOver


@pytest.mark.parametrize("holder, same, expires_at, takeover", CASES)
def test_every_case(holder: Holder, same: bool, expires_at: int, takeover: Takeover) -> None:
    seen = record(holder, expires_at)
    operation = Operation(REF, (b"f" if same else b"g") * 16, takeover=takeover)
    verdict = decide(seen, holder == "lapsed", operation, NOW)
    assert type(verdict) is expected(holder, same, expires_at <= NOW, takeover)
    assert verdict.record is seen
    if isinstance(verdict, TakeOver):
        assert verdict.ask is (takeover == "recover")


def test_expiry_is_exact_to_the_millisecond() -> None:
    operation = Operation(REF, b"f" * 16)
    assert isinstance(decide(record("settled", NOW), False, operation, NOW - 1), Replay)
    assert isinstance(decide(record("settled", NOW), False, operation, NOW), Renew)


def test_a_running_operation_never_expires_under_its_holder() -> None:
    operation = Operation(REF, b"f" * 16)
    assert isinstance(decide(record("alive", 0), False, operation, NOW), Busy)
