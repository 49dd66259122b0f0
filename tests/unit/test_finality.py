"""Which outcomes are kept: the whole table of statuses."""

import pytest

from oncekey.core.finality import is_final
from oncekey.core.model import Kind, Outcome, State

RELEASED = {401, 403, 408, 409, 425, 429}


@pytest.mark.parametrize("status", range(100, 500))
def test_below_500_all_but_what_the_caller_can_mend(status: int) -> None:
    outcome = Outcome(Kind.RESPONSE, status)
    assert is_final(outcome) is (status not in RELEASED)
    assert is_final(outcome, server_errors=True) is (status not in RELEASED)


@pytest.mark.parametrize("status", range(500, 600))
def test_from_500_only_where_the_route_says_so(status: int) -> None:
    outcome = Outcome(Kind.RESPONSE, status)
    assert is_final(outcome) is False
    assert is_final(outcome, server_errors=True) is True


@pytest.mark.parametrize("kind", [Kind.VALUE, Kind.ERROR, Kind.UNKEPT])
@pytest.mark.parametrize("status", [0, 200, 409, 500])
def test_what_is_no_answer_of_a_handler_is_always_final(kind: Kind, status: int) -> None:
    assert is_final(Outcome(kind, status)) is True


@pytest.mark.parametrize(
    "outcome, state",
    [
        (Outcome(Kind.RESPONSE, 204), State.SUCCEEDED),
        (Outcome(Kind.RESPONSE, 302), State.SUCCEEDED),
        (Outcome(Kind.RESPONSE, 400), State.FAILED),
        (Outcome(Kind.RESPONSE, 500), State.FAILED),
        (Outcome(Kind.VALUE), State.SUCCEEDED),
        (Outcome(Kind.ERROR, 500), State.FAILED),
        (Outcome(Kind.UNKEPT, 200), State.SUCCEEDED),
        (Outcome(Kind.UNKEPT, 413), State.FAILED),
    ],
)
def test_how_an_outcome_counts(outcome: Outcome, state: State) -> None:
    assert outcome.state is state
