"""The quickstart for FastAPI, followed from an empty folder to the retry after a crash."""

import json
import re
from collections.abc import Callable
from pathlib import Path

from tests.fixtures.console import Command
from tests.fixtures.newcomer import KILL, File, Newcomer, newcomer, steps_of
from tests.fixtures.pages import DOCS

__all__ = ["newcomer"]

STEPS = list(steps_of(DOCS / "quickstart.md"))


def is_sent_to_the_background(step: File | Command) -> bool:
    return isinstance(step, Command) and step.line.endswith(" &")


def test_every_step_says_what_the_page_shows(newcomer: Callable[[int], Newcomer]) -> None:
    slow, cut_off = (at for at, step in enumerate(STEPS) if is_sent_to_the_background(step))
    crash = STEPS.index(Command(KILL, ""))
    reader = newcomer(8000)
    reader.follow(STEPS[: slow + 1])
    reader.hear("ordering cake")
    reader.follow(STEPS[slow + 1 : cut_off])
    (cake,) = reader.ends_beside()
    assert json.loads(cake)["item"] == "cake"

    reader.follow(STEPS[cut_off:crash])
    reader.hear("ordering pie")
    reader.follow([STEPS[crash]])
    assert reader.ends_beside() == ["curl: (52) Empty reply from server\n"]

    _be_quick(reader.folder / "shop.py")
    reader.follow(STEPS[crash + 1 :])
    first, replay = re.findall(r'{"id":"(\w+)","item":"tea"}', reader.heard)
    assert first == replay


def _be_quick(shop: Path) -> None:
    """The retry need not take its ten seconds."""
    slow = "asyncio.sleep(order.seconds)"
    assert slow in shop.read_text()
    shop.write_text(shop.read_text().replace(slow, "asyncio.sleep(0)"))
