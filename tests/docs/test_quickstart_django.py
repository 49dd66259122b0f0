"""The quickstart for Django, followed from an empty folder to the retry after a crash."""

from collections.abc import Callable
from pathlib import Path

from tests.fixtures.console import Command
from tests.fixtures.newcomer import KILL, Newcomer, newcomer, steps_of
from tests.fixtures.pages import DOCS

__all__ = ["newcomer"]

STEPS = list(steps_of(DOCS / "quickstart-django.md"))


def test_every_step_says_what_the_page_shows(newcomer: Callable[[int], Newcomer]) -> None:
    crash = STEPS.index(Command(KILL, ""))
    reader = newcomer(8000)
    reader.follow(STEPS[:crash])
    reader.hear("ordering pie")
    reader.follow([STEPS[crash]])
    assert reader.ends_beside() == ["curl: (52) Empty reply from server\n"]

    _be_quick(reader.folder / "orders" / "views.py")
    reader.follow(STEPS[crash + 1 :])


def _be_quick(views: Path) -> None:
    """The retry need not take its ten seconds."""
    slow = 'time.sleep(wanted.get("seconds", 0))'
    assert slow in views.read_text()
    views.write_text(views.read_text().replace(slow, "time.sleep(0)"))
