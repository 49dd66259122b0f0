"""The pictures: small multiples over the size of the store, and over the minutes of the soak."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from bench.plot import DURABLE, GRID, INK, OURS

COLOURS = {"sqlite": OURS, "postgres": DURABLE}
NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
COLUMNS = 4

Point = dict[str, float]


class Panel(NamedTuple):
    title: str
    figure: Callable[[Point], float | None]
    """None where a point has none."""
    is_log: bool = False


def _of(name: str, scale: float = 1.0) -> Callable[[Point], float | None]:
    return lambda point: point[name] / scale if name in point else None


GROWTH = (
    Panel("new keys: rate over that of 10,000 keys", _of("new_ratio")),
    Panel("replays, not in memory: the same", _of("cold_ratio")),
    Panel("new keys: processor µs for each", _of("new_cpu_us")),
    Panel("new keys: p99, ms", _of("new_p99_ms")),
    Panel("on disk, GB", _of("data", 1e9)),
    Panel("memory of the process, MB", _of("resident_mb")),
    Panel("opening and a first claim, ms", lambda point: point["open_ms"] + point["first_ms"]),
    Panel("from kill -9 to 64 takeovers, s", _of("takeover_s")),
)
SOAK = (
    Panel("requests answered a second", _of("rate")),
    Panel("p50, ms", _of("p50_ms"), is_log=True),
    Panel("p99, ms", _of("p99_ms"), is_log=True),
    Panel("processor, cores", _of("cores")),
    Panel("memory of the server, MB", _of("resident_mb")),
    Panel("open files", _of("files")),
    Panel("data on disk, MB", _of("data", 1e6)),
    Panel("sweep: age of what is overdue, s", _of("lag_s")),
)


def draw(results: dict[str, Any], folder: Path) -> None:
    try:
        import matplotlib as mpl
    except ImportError:
        print("No pictures: matplotlib is not installed.")
        return
    mpl.use("svg")
    # Fixed ids keep a file the same when the figures are.
    mpl.rcParams.update(
        {"svg.hashsalt": "oncekey", "svg.fonttype": "none", "font.family": "sans-serif"}
    )
    if "growth" in results:
        grown = {store: found["points"] for store, found in results["growth"].items()}
        _save(
            _figure(GROWTH, grown, _of("stored", 1e6), "stored keys, millions", "o"),
            folder,
            "growth",
        )
    if "soak" in results:
        # Without the last, when nobody asks any more.
        soaked = {store: found["samples"][:-1] for store, found in results["soak"].items()}
        _save(_figure(SOAK, soaked, _of("at", 60), "minutes", ""), folder, "soak")


def _save(figure: Any, folder: Path, name: str) -> None:
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None}, facecolor="white")


def _figure(
    panels: tuple[Panel, ...],
    stores: dict[str, list[Point]],
    along: Callable[[Point], float | None],
    label: str,
    marker: str,
) -> Any:
    from matplotlib.figure import Figure

    rows = -(-len(panels) // COLUMNS)
    figure = Figure(figsize=(12, 2.5 * rows + 0.6), layout="constrained")
    places = figure.subplots(rows, COLUMNS, squeeze=False).flat
    for axes, panel in zip(places, panels, strict=True):
        for store, points in sorted(stores.items(), reverse=True):
            _line(axes, points, along, panel, store, marker)
        _dress(axes, panel)
    figure.supxlabel(label, fontsize=9, color=INK)
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure


def _line(
    axes: Any,
    points: list[Point],
    along: Callable[[Point], float | None],
    panel: Panel,
    store: str,
    marker: str,
) -> None:
    pairs = [(along(point), panel.figure(point)) for point in points]
    known = [(x, y) for x, y in pairs if y is not None]
    axes.plot(
        [x for x, _ in known],
        [y for _, y in known],
        color=COLOURS[store],
        label=NAMES[store],
        linewidth=1.4,
        marker=marker,
        markersize=4,
    )


def _dress(axes: Any, panel: Panel) -> None:
    axes.set_title(panel.title, fontsize=9, color=INK)
    axes.margins(y=0.15)
    if panel.is_log:
        axes.set_yscale("log")
    else:
        # From nought: what stays the same should look as if it did.
        axes.set_ylim(bottom=0)
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=8)
    axes.spines[:].set_visible(False)
