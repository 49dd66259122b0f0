"""Planted bugs, each in a copy of the product that is then broken as usual: the checker finds every
one of them. Run by `make storm`."""

import asyncio
from pathlib import Path

import pytest

from tests.chaos.check import RULES, check, name_of
from tests.chaos.mutants import MUTANTS, Mutant
from tests.chaos.run import run

# What is stuck need not be waited for as long as in earnest.
PATIENCE = 15.0
# Some need two things to happen within the same second.
RUNS = 4


@pytest.mark.storm
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_it_is_found(mutant: Mutant, tmp_path: Path) -> None:
    setting = mutant.setting._replace(source=mutant.write(tmp_path), patience=PATIENCE)
    broken: set[str] = set()
    for number in range(RUNS):
        events = asyncio.run(run(setting._replace(seed=f"{setting.seed}{number}"), print)).events
        broken |= {violation.rule for violation in check(events)}
        if broken & mutant.rules:
            return
    pytest.fail(f"{broken or 'nothing'} was found")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_there_is_something_to_change(mutant: Mutant, tmp_path: Path) -> None:
    mutant.write(tmp_path)


def test_they_break_rules_that_there_are() -> None:
    rules = {name_of(rule) for rule in RULES}
    assert all(mutant.rules <= rules for mutant in MUTANTS)
