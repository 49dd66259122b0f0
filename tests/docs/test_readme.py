"""The first page: its configuration is right, its webhook can be made, its ratios were measured."""

import json
import re
from pathlib import Path
from statistics import median

import pytest

from oncekey.config import load
from tests.fixtures.command import Run
from tests.fixtures.console import commands_of
from tests.fixtures.served import ROOT

PAGE = ROOT / "README.md"
FRAMEWORKS = {
    "raw ASGI": "asgi",
    "Starlette": "starlette",
    "FastAPI": "fastapi",
    "Django": "django",
}
EDGE = {
    "no key, passed through": "oncekey-pass",
    "replays": "oncekey-replays",
    "new keys, OnceKey on SQLite (FULL)": "oncekey-new-sqlite",
    "nginx asking `/edge/decide` for each request": "nginx-decide",
    "Caddy `reverse_proxy`": "caddy",
}
RATIOS = re.findall(r"(?m)^\| (.+) \| (\d+\.\d\d) \| (\d+\.\d\d) \|$", PAGE.read_text())


def medians_of(results: str, scenario: str) -> dict[str, float]:
    found = json.loads((ROOT / "bench" / results).read_text())["findings"][scenario]["entries"]
    return {name: median(each["ratios"]) for name, each in found.items() if each["ratios"]}


def of_the_ledger(label: str, scenario: str) -> float:
    """`Starlette, best peer on Redis`: the best of those that keep their keys there."""
    medians = medians_of("results.json", scenario)
    framework, _, who = label.partition(", ")
    prefix = f"{FRAMEWORKS[framework]}:"
    if who == "OnceKey on SQLite (FULL)":
        return medians[f"{prefix}oncekey-sqlite"]
    store = {"best peer on Redis": "-redis", "best peer in memory": "-memory"}[who]
    return max(
        each
        for name, each in medians.items()
        if name.startswith(prefix) and name.endswith(store) and ":oncekey-" not in name
    )


@pytest.mark.parametrize("label, first, second", RATIOS)
def test_its_ratios_are_those_of_the_results(label: str, first: str, second: str) -> None:
    if label in EDGE:
        medians = medians_of("edge/results.json", "edge")
        ratio = medians[EDGE[label]]
        told = (ratio, ratio / medians["bare"])
    else:
        told = (of_the_ledger(label, "new-keys"), of_the_ledger(label, "replays"))

    assert (first, second) == tuple(f"{each:.2f}" for each in told)


def test_every_ratio_is_looked_at() -> None:
    assert len(RATIOS) == 10 + len(EDGE)


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
