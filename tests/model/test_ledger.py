"""The ledger keeps its promises in every state that three processes can bring it into."""

from typing import Any

import pytest

from tests.model import ledger_invariants
from tests.model.explorer import explore
from tests.model.ledger_mutants import MUTANTS, Mutant
from tests.model.ledger_scenarios import LARGE, SMALL
from tests.model.page import counts_of


@pytest.mark.parametrize("name", SMALL)
def test_every_promise_holds_in_every_state(name: str) -> None:
    explored = explore(SMALL[name])
    assert explored.violation is None
    assert explored.stuck == 0
    assert counts_of("ledger", name) == explored[:3]


@pytest.mark.storm
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", LARGE)
def test_every_promise_holds_in_far_more_states(name: str) -> None:
    explored = explore(LARGE[name])
    assert explored.violation is None
    assert explored.stuck == 0
    assert counts_of("ledger", name) == explored[:3]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.wrong)
def test_one_thing_wrong_breaks_one_promise(mutant: Mutant) -> None:
    violation: Any = explore(mutant.model).violation
    assert violation is not None
    assert violation.broken == {mutant.breaks}
    assert len(violation.trace) == mutant.steps


def test_every_promise_is_broken_by_something() -> None:
    assert {mutant.breaks for mutant in MUTANTS} == ledger_invariants.NAMES
