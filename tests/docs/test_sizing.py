"""The page on sizing has no figure that the benchmark does not have."""

import re
from pathlib import Path

import pytest

from tests.fixtures.pages import DOCS
from tests.fixtures.served import ROOT

PAGE = DOCS / "operations" / "sizing.md"
TEXT = re.sub(r"(?ms)^```.*?^```", "", PAGE.read_text())
RESULTS = "".join(
    path.read_text() for path in sorted((ROOT / "bench").rglob("*.md")) if path.is_file()
)
# Rates with a comma, ratios, and what has a unit of time or memory.
FIGURE = r"\b\d+,\d{3}\b|\b\d+\.\d+\b|\b\d+(?= (?:ms|µs|MB)\b)"
# Settings and the data of the benchmark, which are no results; `5 ms` is an example.
GIVEN = {"5", "10", "20"}


def test_there_are_figures() -> None:
    assert len(set(re.findall(FIGURE, TEXT))) > 40


@pytest.mark.parametrize("figure", sorted(set(re.findall(FIGURE, TEXT)) - GIVEN))
def test_a_figure_is_one_of_the_benchmark(figure: str) -> None:
    plain = re.escape(figure)
    assert re.search(rf"(?<![\d.,]){plain}(?![\d,])", RESULTS), figure


def test_rows_are_those_of_the_benchmark() -> None:
    results = (ROOT / "bench" / "RESULTS.md").read_text()
    for framework, store, new, ratio, replays, replayed in re.findall(
        r"(?m)^\| ([\w ]+), (\w+) \| ([\d,]+) \| ([\d.]+) \| ([\d,]+) \| ([\d.]+) \|$", TEXT
    ):
        name = {"raw ASGI": "asgi"}.get(framework, framework.lower())
        row = rf"\| {name} \| \*\*oncekey \({_store(store)}\)\*\* \| {{}} \([^)]*\) \| {{}} \|"
        for one, other in ((ratio, new), (replayed, replays)):
            assert re.search(row.format(re.escape(one), re.escape(other)), results), (name, store)


def _store(name: str) -> str:
    return {"SQLite": "sqlite", "PostgreSQL": "postgres"}[name]


def test_the_page_links_to_every_table_it_takes_from() -> None:
    linked = {Path(link).as_posix() for link in re.findall(r"\(\.\./\.\./(bench[^)#]*)", TEXT)}
    assert linked == {
        "bench/RESULTS.md",
        "bench/edge/RESULTS.md",
        "bench/durable/RESULTS.md",
        "bench/restate/RESULTS.md",
        "bench/console/RESULTS.md",
        "bench/console/WATCHED.md",
        "bench/scale/RESULTS.md",
        "bench/scale/growth.svg",
    }
