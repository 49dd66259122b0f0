"""The page on chaos names every rule, job, trouble and planted bug there is, and no other."""

import re
from pathlib import Path
from typing import get_args

from tests.chaos.check import RULES, name_of
from tests.chaos.mutants import MUTANTS
from tests.chaos.plan import Deed
from tests.chaos.run import JOBS
from tests.chaos.site.server import ROOT

PAGE = Path(ROOT / "docs" / "chaos.md").read_text()


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def first_cells(title: str) -> set[str]:
    """What is named in the first column of the table there."""
    cells = re.findall(r"^\| (`.+?) \|", section(title), re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([\w-]+)`", cell)}


def test_every_rule_is_told_in_its_own_words() -> None:
    told = dict(re.findall(r"^\| `([\w-]+)` \| (.+) \|$", section("What must hold"), re.MULTILINE))
    assert told == {name_of(rule): " ".join((rule.__doc__ or "").split()) for rule in RULES}


def test_every_job_and_trouble_is_told() -> None:
    assert first_cells("Who asks") == set(JOBS)
    assert first_cells("What is broken") == set(get_args(Deed))


def test_every_planted_bug_is_told() -> None:
    told = re.findall(r"^- (.+)$", section("Who checks the checker"), re.MULTILINE)
    assert told == [mutant.name for mutant in MUTANTS]
    assert len(told) >= 10
