"""What was taken over and failed keeps its key for the same request: whoever had it before may have
done it, and another request under the key would be done on top."""

from collections.abc import Iterator

import pytest

import oncekey
from oncekey import Claim, Kind, Ledger, Mismatch, Operation, Outcome, Proceed, Ref, Replay, Scope
from oncekey.core.ports import Query
from tests.fixtures.stores import until

REF = Ref(Scope(oncekey.namespace_of(), "POST /orders"), "k")
X, Y = (Operation(REF, letter * 16) for letter in (b"x", b"y"))
FAILED, DONE = Outcome(Kind.RESPONSE, 503), Outcome(Kind.RESPONSE, 201)


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    opened = oncekey.open(url)
    yield opened
    opened.close(grace=0)


def proceeds(ledger: Ledger, operation: Operation) -> Claim:
    decision = ledger.begin(operation)
    assert isinstance(decision, Proceed)
    return decision.claim


def test_a_takeover_that_fails_lets_no_other_request_in(ledger: Ledger) -> None:
    proceeds(ledger, X).abandon()
    # Nobody waits for that.
    until(lambda: [found.lapsed for found in ledger.list(Query())] == [True])
    for fence in (2, 3):
        claim = proceeds(ledger, X)
        assert claim.fence == fence
        assert not claim.conclude(FAILED)
        assert isinstance(ledger.begin(Y), Mismatch)
    assert proceeds(ledger, X).conclude(DONE)
    assert isinstance(ledger.begin(X), Replay)
    assert isinstance(ledger.begin(Y), Mismatch)


def test_a_first_run_that_fails_gives_the_key_back(ledger: Ledger) -> None:
    assert not proceeds(ledger, X).conclude(FAILED)
    assert proceeds(ledger, Y).fence == 1
