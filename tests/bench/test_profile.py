"""The profile: every walk can be walked, what is sampled is summed up by room, and drawn."""

import json
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from bench.profile.flame import flame
from bench.profile.stacks import rooms_of, stacks_of
from bench.profile.walks import WALKS
from tests.fixtures.served import ROOT

FOLDED = """\
thread (1): MainThread;main (bench/profile/walking.py:1);Runner.run (asyncio/runners.py:86) 30
thread (1): MainThread;main (bench/profile/walking.py:1);decide (oncekey/edge/decide.py:41) 50
thread (2): oncekey-writer;Writer._take (oncekey/stores/writer.py:9) 900
thread (2): oncekey-writer;SqliteSession._write (oncekey/stores/sqlite/session.py:87) 20
"""


def figures_of(walk: str, under: str) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.profile.walking", walk, "40", "--under", under]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(run.stdout.splitlines()[-1])["figures"]
    return found


@pytest.mark.parametrize("walk", [name for name, each in WALKS.items() if each.store == "sqlite"])
def test_a_walk_is_walked(walk: str) -> None:
    figures = figures_of(walk, "clock")
    assert {name for name, value in figures.items() if value > 0} >= {"cpu", "loop", "wall"}


def test_calls_are_counted_in_every_thread() -> None:
    figures = figures_of("request-new", "calls")
    # Claims and outcomes go in groups; the writer makes its statements in a thread of its own.
    assert 0 < figures["statements"] < 2
    assert figures["calls"] > 50


def test_samples_are_of_rooms_and_of_threads_that_do_something() -> None:
    rooms = rooms_of(stacks_of(FOLDED))
    assert [round(share, 2) for share in rooms.values()] == [0.5, 0.3, 0.2]
    assert next(iter(rooms)) == "`edge`"


def test_a_flame_is_as_wide_as_what_was_seen() -> None:
    picture = ET.fromstring(flame(stacks_of(FOLDED), "a <walk>"))
    titles = [each.text or "" for each in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert "decide (oncekey/edge/decide.py:41): 50.0%" in titles
    assert "thread (2): oncekey-writer: 20.0%" in titles
