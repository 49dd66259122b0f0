"""The page says what the models promise, in the words of the code, and nothing else."""

import ast
import inspect
from itertools import pairwise
from types import ModuleType

import pytest

from tests.model import (
    ledger_invariants,
    ledger_scenarios,
    promise_invariants,
    promise_scenarios,
)
from tests.model.page import rows, section

PROMISED = {
    "What the ledger promises": ledger_invariants,
    "What is promised about promises": promise_invariants,
}


def promised_by(module: ModuleType) -> dict[str, str]:
    """Every promise with its line: that of its function, or the one below the name of the end."""
    tree = ast.parse(inspect.getsource(module)).body
    lines = {
        node.name.title().replace("_", ""): ast.get_docstring(node) or ""
        for node in tree
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    told = next(
        below.value.value
        for node, below in pairwise(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == "ENDING"
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
    )
    lines[module.ENDING] = str(told)
    return {name: line for name, line in lines.items() if name in module.NAMES}


@pytest.mark.parametrize("heading", PROMISED)
def test_every_promise_is_on_the_page(heading: str) -> None:
    found = {row[0]: row[1] for row in rows(section(heading))}
    assert found == promised_by(PROMISED[heading])
    assert set(found) == PROMISED[heading].NAMES


@pytest.mark.parametrize(
    "heading, scenarios",
    [
        ("States of the ledger", ledger_scenarios),
        ("States of the promises", promise_scenarios),
    ],
)
def test_every_scenario_is_on_the_page(heading: str, scenarios: ModuleType) -> None:
    every = scenarios.SMALL | scenarios.LARGE
    found = {row[0]: int(row[1]) for row in rows(section(heading))}
    assert found == {name: model.faults for name, model in every.items()}
