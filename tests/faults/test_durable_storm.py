"""A few hundred workflows and a few kills: each ends once, and nothing is lost or done again."""

import random
from pathlib import Path

import pytest

from tests.fixtures.processes import Start
from tests.fixtures.storm import Fleet, call, check, rage


@pytest.mark.parametrize("size", [1, 2])
def test_workflows_outlive_the_processes_that_run_them(
    start: Start, url: str, tmp_path: Path, size: int
) -> None:
    dice = random.Random(size)
    # A call through Restate takes longer than a commit, and so does coming back.
    slow = url.startswith("restate")
    fleet = Fleet(url, tmp_path, size, dice, lease=0.6, heartbeat=0.15)
    client = start(call, url, tmp_path, 1, 300, 20 if slow else 150)
    count, wrong = rage(fleet, client, [fleet.kill], dice, kills=4, pause=4.0 if slow else 0.5)
    fleet.close()
    assert wrong == []
    assert count > (4 if slow else 20)
    check(url, tmp_path)
