"""The first page: the configuration it shows is right, and its webhook can be made."""

import re
from pathlib import Path

from oncekey.config import load
from tests.fixtures.command import Run
from tests.fixtures.console import commands_of
from tests.fixtures.served import ROOT

PAGE = ROOT / "README.md"


def test_its_edge_is_configured_in_ten_lines(oncekey: Run, tmp_path: Path) -> None:
    (toml,) = re.findall(r"(?ms)^```toml\n(.*?)^```", PAGE.read_text())
    (tmp_path / "oncekey.toml").write_text(toml)

    assert len(toml.splitlines()) <= 10
    (route,) = load(tmp_path / "oncekey.toml", {}, {}).routes
    assert route.upstream == "orders"
    checked = oncekey("check", "--offline", "--strict")
    assert (checked.returncode, checked.stderr) == (0, "")


def test_its_webhook_can_be_made(oncekey: Run) -> None:
    (line,) = [each.line for each in commands_of(PAGE) if each.line.startswith("oncekey webhooks")]
    words = re.findall(r"'[^']*'|\S+", line)[1:]
    oncekey("migrate")

    made = oncekey(*(word.strip("'") for word in words))
    assert made.returncode == 0, made.stderr
    assert "/api/v1/webhooks/stripe/wh_" in made.stdout
