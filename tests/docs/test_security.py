"""The threat model and the limits are as the code has them: every test that is named is there, and
every number is the one in force."""

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from oncekey.config import load
from oncekey.config.edge_settings import UpstreamSettings
from oncekey.config.settings import Settings
from tests.fixtures.pages import DOCS
from tests.fixtures.tables import rows

TESTS = Path(__file__).parents[1]
SECURITY, LIMITS = ((DOCS / name).read_text() for name in ("security.md", "reference/limits.md"))
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", SECURITY + LIMITS)))
BOUNDS = rows(LIMITS, "what", "bound", "setting", "beyond it", "shown by")
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "s": 1, "h": 3600, "": 1, "characters": 1}
NUMBER = re.compile(r"(\d+) ?(KiB|MiB|s|h|characters|)")


@cache
def functions_in(path: Path) -> frozenset[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(each.name for each in nodes if isinstance(each, kinds))


def constant_of(name: str) -> Any:
    """By its name under the package; the default of a field by the name of its class before it."""
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(import_module(f"oncekey.{module}"), attribute)
    except ModuleNotFoundError:
        module, _, kind = module.rpartition(".")
        held: Any = getattr(import_module(f"oncekey.{module}"), kind)
        return held.__dataclass_fields__[attribute].default


def default_of(settings: Settings, name: str) -> Any:
    section, _, rest = name.partition(".")
    held: Any = UpstreamSettings() if section == "upstreams" else getattr(settings, section)
    return getattr(held, rest)


def number_in(bound: str) -> float | None:
    """None for a bound that is told in words."""
    found = NUMBER.fullmatch(bound.partition("<br>")[0])
    return None if found is None else int(found[1]) * UNITS[found[2]]


def test_there_is_something_to_look_at() -> None:
    assert len(NAMED) > 80
    assert len(BOUNDS) > 35


@pytest.mark.parametrize("path, name", NAMED)
def test_every_test_that_is_named_is_there(path: str, name: str) -> None:
    assert name in functions_in(TESTS / path)


@pytest.mark.parametrize("row", BOUNDS, ids=lambda row: row[0])
def test_every_bound_is_the_one_in_force(row: list[str]) -> None:
    _, bound, setting, _, shown = row
    assert "::" in shown
    number, constant = number_in(bound), re.search(r"<br>`([\w.]+)`", bound)
    if constant is not None:
        assert constant_of(constant[1]) == number
        return
    if number is not None and setting:
        assert default_of(load(None, {}), setting.strip("`")) == number


@pytest.mark.parametrize(
    "columns",
    [("tries", "what stops it", "shown by"), ("finding", "severity", "what was done", "shown by")],
)
def test_everything_is_shown_or_argued(columns: tuple[str, ...]) -> None:
    found = rows(SECURITY, *columns)
    assert len(found) > 15
    for row in found:
        assert "::" in row[-1] or "argued:" in row[-2], row[0]
