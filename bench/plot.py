"""The picture: each contender's ratio to the bare application, for new keys and for replays."""

from pathlib import Path
from typing import Any

from bench.contenders import CONTENDERS, Contender
from bench.results import Findings, Results

PANELS = {
    "new-keys": "New keys: throughput, bare application = 1",
    "replays": "Replays: throughput, bare application = 1",
}
FRAMEWORKS = {
    "asgi": "raw ASGI",
    "starlette": "Starlette",
    "fastapi": "FastAPI",
    "django": "Django",
}
OURS, DURABLE, VOLATILE, INK, GRID = "#0b6e4f", "#5b7fa6", "#b9c3cf", "#222222", "#dddddd"


def draw(results: Results, path: Path) -> None:
    shown = {name: results.findings[name] for name in PANELS if name in results.findings}
    rows = _rows(shown)
    if not rows:
        return
    try:
        import matplotlib as mpl
    except ImportError:
        print("No picture: matplotlib is not installed.")
        return
    mpl.use("svg")
    # Fixed ids keep the file the same when the figures are.
    mpl.rcParams.update(
        {"svg.hashsalt": "oncekey", "svg.fonttype": "none", "font.family": "sans-serif"}
    )
    figure = _figure(results, shown, rows)
    figure.savefig(path, metadata={"Date": None}, facecolor="white")


def _rows(shown: dict[str, Findings]) -> list[Contender | str]:
    """Top to bottom: a heading per framework, then its contenders, the fastest first."""
    first = next(iter(shown.values()), None)
    rows: list[Contender | str] = []
    for framework, title in FRAMEWORKS.items():
        found = [
            each
            for each in CONTENDERS
            if each.framework == framework and not each.is_bare
            if any(findings.median(each.name) for findings in shown.values())
        ]
        if found and first:
            rows += [title, *sorted(found, key=lambda each: -(first.median(each.name) or 0))]
    return rows


def _figure(results: Results, shown: dict[str, Findings], rows: list[Contender | str]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 0.27 * len(rows) + 1.7), layout="constrained")
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for axes, (name, findings) in zip(panels, shown.items(), strict=True):
        _panel(axes, PANELS[name], findings, rows)
    _labels(panels[0], rows)
    core = f"{results.machine['cpu']}, one server core, 64 connections"
    note = f"bar: median of {results.plan.rounds} rounds, line: lowest to highest. {core}."
    figure.supxlabel(note, fontsize=8, color=INK)
    figure.legend(handles=_legend(), loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    return figure


def _panel(axes: Any, title: str, findings: Findings, rows: list[Contender | str]) -> None:
    for place, row in enumerate(rows):
        spread = (
            findings.entries[row.name].spread
            if isinstance(row, Contender) and row.name in findings.entries
            else None
        )
        if isinstance(row, str):
            continue
        if not spread:
            axes.text(0.02, place, "not measured", va="center", fontsize=7, color="#888888")
            continue
        axes.barh(place, spread.median, height=0.68, color=_colour(row))
        axes.plot([spread.low, spread.high], [place, place], color=INK, linewidth=1)
        axes.text(
            spread.high + 0.02, place, f"{spread.median:.2f}", va="center", fontsize=8, color=INK
        )
    axes.axvline(1, color=INK, linewidth=1, linestyle=":")
    axes.set_title(title, fontsize=10, color=INK)
    highest = max(
        (entry.spread.high for entry in findings.entries.values() if entry.spread), default=1
    )
    axes.set_xlim(0, max(1.1, highest * 1.12))
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=8)
    axes.spines[:].set_visible(False)


def _labels(axes: Any, rows: list[Contender | str]) -> None:
    axes.set_yticks(range(len(rows)), [row if isinstance(row, str) else row.label for row in rows])
    for label, row in zip(axes.get_yticklabels(), rows, strict=True):
        ours = isinstance(row, Contender) and row.product == "oncekey"
        label.set_fontweight("bold" if isinstance(row, str) or ours else "normal")


def _colour(contender: Contender) -> str:
    if contender.product == "oncekey":
        return OURS if contender.is_durable else "#7fb8a3"
    return DURABLE if contender.is_durable else VOLATILE


def _legend() -> list[Any]:
    from matplotlib.patches import Patch

    return [
        Patch(color=OURS, label="OnceKey (lighter: in memory)"),
        Patch(color=DURABLE, label="peer, durable store"),
        Patch(color=VOLATILE, label="peer, memory or Redis without persistence"),
    ]
