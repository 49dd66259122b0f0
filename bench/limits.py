"""Where the limit is when a goal is not met; `limits.toml` has the words."""

import re
import tomllib
from functools import cache
from pathlib import Path

from bench.goals import Goal


def limit_of(goal: Goal) -> str:
    """Nothing for one that is met, or was not measured."""
    if goal.met or goal.measured is None:
        return ""
    return next((why for fits, why in _limits() if fits.match(goal.text)), "")


@cache
def _limits() -> list[tuple[re.Pattern[str], str]]:
    text = Path(__file__).with_suffix(".toml").read_text()
    return [
        (re.compile(each["goal"]), each["why"].strip()) for each in tomllib.loads(text)["limits"]
    ]
