"""The comparison: what it calls measured is in the benchmark, and its versions are those of it."""

import re

import pytest

from tests.fixtures.pages import DOCS
from tests.fixtures.served import ROOT

TEXT = (DOCS / "compared.md").read_text()
RESULTS = {
    name: (ROOT / "bench" / name).read_text()
    for name in (
        "RESULTS.md",
        "edge/RESULTS.md",
        "durable/RESULTS.md",
        "restate/RESULTS.md",
    )
}
ALL = "".join(RESULTS.values())
# Told by others, or told of them: no results of ours.
TOLD = {"43,000"}
FIGURES = sorted(
    set(re.findall(r"(?<![\d.])0\.\d\d\b|\b\d+,\d{3}\b|\b\d+\.\d ms\b|\b\d+ MB\b", TEXT)) - TOLD
)


def test_there_are_figures() -> None:
    assert len(FIGURES) > 20


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_is_one_of_the_benchmark(figure: str) -> None:
    plain = re.escape(figure.removesuffix(" ms").removesuffix(" MB"))
    assert re.search(rf"(?<![\d.,]){plain}(?![\d,])", ALL), figure


def best(table: str, framework: str, store: str) -> str:
    """The highest ratio of a peer, in a table of the benchmark."""
    part = RESULTS["RESULTS.md"].partition(f"\n## {table}\n")[2].partition("\n## ")[0]
    rows = re.findall(rf"(?m)^\| {framework} \| (?!bare)([\w -]+) \({store}\) \| ([\d.]+) ", part)
    return str(max(ratio for _, ratio in rows))


@pytest.mark.parametrize("framework", ["Starlette", "FastAPI", "Django"])
def test_the_best_peer_is_the_best_one(framework: str) -> None:
    row = re.findall(
        rf"(?m)^\| {framework}, the best peer on Redis.*? \| ([\d.]+) \| ([\d.]+) \|$", TEXT
    )
    name = framework.lower()
    assert row == [(best("New keys", name, "redis"), best("Replays", name, "redis"))]


def test_memory_is_told_of_where_it_is_faster() -> None:
    for framework in ("starlette", "fastapi", "django"):
        assert best("New keys", framework, "memory") in TEXT.partition("**Where OnceKey is**")[0]


def test_the_versions_are_those_that_were_measured() -> None:
    versions = dict(re.findall(r"(?m)^\| ([\w-]+) \| (\d[\w.]*)", RESULTS["restate/RESULTS.md"]))
    told = dict(re.findall(r"(?m)^\| \**([\w-]+)\** \| (\d[\d.]+) \|", TEXT))
    told = {name.lower(): version for name, version in told.items()}
    compared = {name for name in told if name in versions}
    assert {name: told[name] for name in compared} == {name: versions[name] for name in compared}
    assert len(compared) > 6
    assert f"DBOS Transact {versions['dbos']}" in TEXT
    assert f"Restate {versions['restate']}" in TEXT


def test_issues_are_linked_by_their_name() -> None:
    for name, number, link in re.findall(r"\[([\w./-]+)#(\d+)\]\(([^)]+)\)", TEXT):
        assert link == f"https://github.com/{name}/issues/{number}"


def test_goals_that_were_missed_are_told() -> None:
    edge = re.findall(r"(?m)^\| .+ \| (met|\*\*not met\*\*) \|$", RESULTS["edge/RESULTS.md"])
    assert edge == ["**not met**"] * 4
    assert "all four were missed" in " ".join(TEXT.split())
