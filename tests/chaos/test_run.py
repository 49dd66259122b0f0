"""A short run on each store: everything is broken once or twice, and every promise is kept."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos import history
from tests.chaos.check import check
from tests.chaos.history import Answered, Effect, Trouble
from tests.chaos.run import Setting, run
from tests.chaos.site.server import ROOT
from tests.chaos.test_rules import BROKEN, SOUND

SECONDS = 12.0


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "store",
    [
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("restate", marks=pytest.mark.restate),
    ],
)
def test_every_promise_is_kept(store: str, tmp_path: Path) -> None:
    setting = Setting(store, SECONDS, "a short run", keep=tmp_path / "kept")
    events = asyncio.run(run(setting, print)).events
    assert list(check(events)) == []
    for kind in (Answered, Effect, Trouble):
        assert any(isinstance(event, kind) for event in events), kind
    assert (tmp_path / "kept" / "history.jsonl").exists()


def _checked(file: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.chaos", "--check", str(file)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_history_is_checked_again(tmp_path: Path) -> None:
    history.write(tmp_path / "sound", SOUND["one-answer"].events)
    assert _checked(tmp_path / "sound").returncode == 0


def test_a_violation_is_told_with_its_shortest_history(tmp_path: Path) -> None:
    history.write(tmp_path / "broken", BROKEN["one-effect"].events)
    told = _checked(tmp_path / "broken")
    assert told.returncode == 1
    assert "one-effect job 1: /app/rerun k is at-least-once" in told.stdout
    assert "s1 does /app/rerun k: m" in told.stdout
