"""What is published of goals: all in one table, each with its reason where it is not met."""

import json
import re

import pytest

from bench import report
from bench.__main__ import FOLDERS
from bench.goals import Goal, goals_of
from bench.limits import limit_of
from bench.results import Results, results_of
from tests.fixtures.served import ROOT

BENCH = ROOT / "bench"
PUBLISHED = {
    group: results_of(json.loads((folder / "results.json").read_text()))
    for group, folder in FOLDERS.items()
}
GOALS = [goal for results in PUBLISHED.values() for goal in goals_of(results)]


@pytest.mark.parametrize(
    "goal", [each for each in GOALS if not each.met], ids=lambda each: each.text
)
def test_a_goal_that_is_not_met_has_a_reason(goal: Goal) -> None:
    why = limit_of(goal)
    assert len(why) > 50
    for link in re.findall(r"\]\(([^)]+)\)", why):
        page, _, place = link.partition("#")
        assert (BENCH / page).exists(), link
        assert not place or f"\n## {place}\n" in (BENCH / page).read_text(), link


@pytest.mark.parametrize("goal", GOALS, ids=lambda each: each.text)
def test_every_goal_stands_in_the_first_report(goal: Goal) -> None:
    page = (BENCH / "RESULTS.md").read_text()
    assert f"| {goal.text} | {goal.target} | {goal.measured or '–'} | {goal.verdict} |" in page


def test_a_goal_that_is_met_needs_no_reason() -> None:
    text = "New keys on Restate, 1 node"
    assert limit_of(Goal(text, "≥ 0.70 ×", "0.80 ×", True)) == ""
    assert limit_of(Goal(text, "≥ 0.70 ×", "0.60 ×", False)) != ""
    assert limit_of(Goal(text, "≥ 0.70 ×")) == ""


def test_the_table_counts_what_is_met() -> None:
    groups: dict[str, Results] = {"": PUBLISHED["ledger"], "edge": PUBLISHED["edge"]}
    goals = [goal for results in groups.values() for goal in goals_of(results)]
    told = report.all_goals(groups)
    assert told.startswith(f"{sum(goal.met for goal in goals)} of {len(goals)} are met.")
    assert told.count("| [edge](edge/RESULTS.md) |") == len(list(goals_of(groups["edge"])))
