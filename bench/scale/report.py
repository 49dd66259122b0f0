"""RESULTS.md: what was found at scale, a section for each part, a table for both stores."""

from collections.abc import Callable, Iterator
from typing import Any

from bench.scale.notes import AFTERWORD, GROWTH, HEAD, PROMISES, SOAK, SWEEP, WORKFLOWS
from bench.scale.plots import NAMES
from bench.scale.sizes import Sizes
from bench.scale.slope import slope_of
from bench.tables import table

Found = dict[str, Any]
Cell = Callable[[Found], str]
MACHINE = ("cpu", "cores", "kernel", "fdatasync", "python", "sqlite")


def text_of(results: dict[str, Any]) -> str:
    sections = (
        ("growth", _growth), ("sweep", _sweep), ("promises", _promises),
        ("workflows", _workflows), ("soak", _soak),
    )  # fmt: skip
    parts = [HEAD, *(write(results[name]) for name, write in sections if name in results)]
    # What is said there is of these sizes, and was read from these tables.
    parts += [AFTERWORD] if _is_whole(results) else []
    return "\n".join([*parts, _measured(results)])


def _is_whole(results: dict[str, Any]) -> bool:
    sizes = [each["about"]["sizes"] for stores in results.values() for each in stores.values()]
    return all(each["keys"] == Sizes().keys for each in sizes)


def _measured(results: dict[str, Any]) -> str:
    """Which part was measured when, and beside how much else."""
    rows, told = [], {}
    for part, stores in results.items():
        for store, found in stores.items():
            about = found["about"]
            told = told or {name: about[name] for name in MACHINE}
            load = f"{about['load average before']} to {about['load average after']}"
            rows.append((part, NAMES[store], about["started"], load, about["commit"]))
    shown = ", ".join(f"{name} {value}" for name, value in told.items())
    head = ("part", "store", "started", "load average", "commit")
    return f"## Measured\n\n{shown}.\n\n{table(head, rows)}"


def _columns(stores: dict[str, Found], rows: dict[str, Cell]) -> str:
    """A row for each figure, a column for each store."""
    shown = [name for name in NAMES if name in stores]
    lines = [(text, *(cell(stores[name]) for name in shown)) for text, cell in rows.items()]
    return table(("", *(NAMES[name] for name in shown)), lines)


def _growth(stores: dict[str, Found]) -> str:
    tables = []
    for store, name in NAMES.items():
        if store in stores:
            points = stores[store]["points"]
            tables += [f"**{name}**\n", _speed(points), _weight(points)]
    return GROWTH + "\n" + "\n".join(tables)


def _speed(points: list[Found]) -> str:
    head = (
        "stored keys", "new keys, ratio", "a second", "p50 / p99 ms", "processor µs",
        "replays, ratio", "a second", "p50 / p99 ms", "processor µs", "256 again and again",
    )  # fmt: skip
    return table(head, [_speed_row(point) for point in points])


def _speed_row(point: Found) -> Iterator[str]:
    yield f"{point['stored']:,}"
    yield _ratio(point, "new")
    yield f"{point['new_rate']:,.0f}"
    yield _latency(point, "new_")
    yield _processor(point, "new")
    if "cold_rate" not in point:
        yield from ("",) * 5
        return
    yield _ratio(point, "cold")
    yield f"{point['cold_rate']:,.0f}"
    yield _latency(point, "cold_")
    yield _processor(point, "cold")
    yield f"{point['hot_rate']:,.0f}"


def _weight(points: list[Found]) -> str:
    head = (
        "stored keys", "on disk, MB", "bytes a key", "resident MB", "open ms", "first claim ms",
        "kill -9 to all taken over, s", "sync ms",
    )  # fmt: skip
    empty = points[0]["data"]
    rows = [
        (
            f"{point['stored']:,}",
            f"{point['data'] / 1e6:,.0f}",
            f"{(point['data'] - empty) / point['stored']:.0f}" if point["stored"] else "",
            f"{point['resident_mb']:.0f}",
            f"{point['open_ms']:.0f}",
            f"{point['first_ms']:.1f}",
            f"{point['takeover_s']:.1f}",
            f"{point['sync_ms']:.2f}",
        )
        for point in points
    ]
    return table(head, rows)


def _processor(point: Found, what: str) -> str:
    return f"{point[f'{what}_cpu_us']:.0f} / {point[f'{what}_beside_cpu_us']:.0f}"


def _ratio(point: Found, what: str) -> str:
    low, high = point[f"{what}_lowest"], point[f"{what}_highest"]
    return f"{point[f'{what}_ratio']:.2f} ({low:.2f}–{high:.2f})"


def _latency(found: Found, prefix: str = "") -> str:
    return f"{found[f'{prefix}p50_ms']:.1f} / {found[f'{prefix}p99_ms']:.1f}"


def _claims(name: str) -> Cell:
    def cell(found: Found) -> str:
        claims = found[name]
        return f"{_latency(claims)} / {claims['max_ms']:.0f} ms, {claims['rate']:,.0f} a second"

    return cell


def _megabytes(name: str, figure: str = "data") -> Cell:
    return lambda found: f"{found['bytes'][name][figure] / 1e6:,.0f} MB"


def _sweep(stores: dict[str, Found]) -> str:
    rows: dict[str, Cell] = {
        "stored keys": lambda found: f"{found['stored']:,}",
        "a first sweep, with nothing to delete, takes": lambda found: (
            f"{found['first']['seconds']:.1f} s"
        ),
        "claims during it: p50 / p99 / longest": _claims("first"),
        "the next one takes": lambda found: f"{found['nothing']['seconds']:.1f} s",
        "past their time": lambda found: f"{found['expired']:,}",
        "deleted": lambda found: f"{found['during']['swept']:,.0f}",
        "in": lambda found: f"{found['during']['seconds']:.0f} s",
        "deleted a second": lambda found: f"{found['rate']:,.0f}",
        "claims without a sweep": _claims("without"),
        "claims during it": _claims("during"),
        "claims after it": _claims("after"),
        "on disk before": _megabytes("before"),
        "on disk after it": _megabytes("swept"),
        "of which free for new rows": _megabytes("swept", "free"),
        "new keys written then": lambda found: f"{found['refilled']:,.0f}",
        "on disk after these": _megabytes("refilled"),
    }
    return SWEEP + "\n" + _columns(stores, rows)


def _promises(stores: dict[str, Found]) -> str:
    def few_and_many(figure: Callable[[Found], str]) -> Cell:
        return lambda found: f"{figure(found['few'])}, then {figure(found['many'])}"

    def verb(name: str) -> Cell:
        return few_and_many(lambda look: f"{look[name]['rate']:,.0f} ({_latency(look[name])} ms)")

    rows: dict[str, Cell] = {
        "pending, with keys": lambda found: f"0, then {found['pending']:,}",
        "made a second (p50 / p99)": verb("created"),
        "found by key a second": verb("found"),
        "resolved by key a second": verb("resolved"),
        "parked a second": lambda found: (
            f"{found['many']['parked']['rate']:,.0f} ({_latency(found['many']['parked'])} ms)"
        ),
        "on disk": few_and_many(lambda look: f"{look['bytes']['data'] / 1e6:,.0f} MB"),
        "bytes a promise": _bytes_a_promise,
        "resident": few_and_many(lambda look: f"{look['resident_mb']:.0f} MB"),
        "from start to first resolved, after kill -9": few_and_many(
            lambda look: f"{look['again_s']:.2f} s"
        ),
        "wrong answers": few_and_many(lambda look: f"{look['wrong']:.0f}"),
    }
    return PROMISES + "\n" + _columns(stores, rows)


def _bytes_a_promise(found: Found) -> str:
    grown = found["many"]["bytes"]["data"] - found["few"]["bytes"]["data"]
    return f"{grown / found['pending']:.0f}"


def _workflows(stores: dict[str, Found]) -> str:
    rows: dict[str, Cell] = {
        "waiting": lambda found: f"{found['waiting']:,}",
        "started in": lambda found: f"{found['filled']['seconds']:.0f} s",
        "on disk": lambda found: f"{found['bytes']['data'] / 1e6:,.0f} MB",
        "resident: empty / having started all / started anew": lambda found: (
            f"{found['empty']['resident_mb']:.0f} / {found['filled']['resident_mb']:.0f} / "
            f"{found['revived']['resident_mb']:.0f} MB"
        ),
        "kill -9: from start until 21 were resolved and went on": lambda found: (
            f"{found['start_s']:.2f} s"
        ),
        "idle: share of a core, empty / waiting": lambda found: (
            f"{found['empty']['cores']:.2%} / {found['idle']['cores']:.2%}"
        ),
        "resolve to resume, none waiting (p50 / p99)": lambda found: (
            f"{_latency(found['resumed_before'])} ms"
        ),
        "resolve to resume, all waiting": lambda found: f"{_latency(found['resumed'])} ms",
        "woken at once": lambda found: f"{found['woken']['woken']:,}",
        "went on a second": lambda found: f"{found['woken']['rate']:,.0f}",
        "wrong values": lambda found: f"{found['wrong']:.0f}",
    }
    return WORKFLOWS + "\n" + _columns(stores, rows)


def _soak(stores: dict[str, Found]) -> str:
    def half(figure: str, unit: str, scale: float = 1.0) -> Cell:
        def cell(found: Found) -> str:
            middle = len(found["samples"]) // 2
            early, late = found["samples"][1:middle], found["samples"][middle:]
            first, second = (_middle(each, figure) / scale for each in (early, late))
            return f"{first:,.1f} / {second:,.1f}{unit}"

        return cell

    def slope(figure: str, unit: str, scale: float = 1.0) -> Cell:
        return lambda found: f"{found['slopes'][figure] / scale:+,.1f} {unit} an hour"

    rows: dict[str, Cell] = {
        "asked for": lambda found: f"{found['rate']:.0f} a second and more",
        "minutes": lambda found: f"{found['samples'][-1]['at'] / 60:.0f}",
        "requests": lambda found: f"{sum(_counted(found).values()):,}",
        "not as expected": lambda found: f"{sum(each['wrong'] for each in found['samples']):.0f}",
        "requests a second, first / second half": half("rate", ""),
        "p50": half("p50_ms", " ms"),
        "p99": half("p99_ms", " ms"),
        "longest": lambda found: f"{max(each['max_ms'] for each in found['samples']):,.0f} ms",
        "cores": half("cores", ""),
        "resident": half("resident_mb", " MB"),
        "**slope of memory**, second half": slope("resident_mb", "MB"),
        "slope of memory, last ten minutes": lambda found: (
            f"{slope_of(found['samples'][-60:], 'resident_mb'):+.1f} MB an hour"
        ),
        "data on disk": half("data", " MB", 1e6),
        "**slope of data on disk**": slope("data", "MB", 1e6),
        "**slope of data in use**": slope("used", "MB", 1e6),
        "log in front of it": half("log", " MB", 1e6),
        "open files": half("files", ""),
        "threads": half("threads", ""),
        "oldest overdue outcome": half("lag_s", " s"),
        "answer to /metrics": half("metrics_ms", " ms"),
    }
    return SOAK + "\n" + _columns(stores, rows) + "\n" + _rows(stores)


def _counted(found: Found) -> dict[str, int]:
    return {kind: sum(told.values()) for kind, told in found["statuses"].items()}


def _middle(samples: list[Found], figure: str) -> float:
    values = sorted(each[figure] for each in samples) or [0.0]
    return float(values[len(values) // 2])


def _rows(stores: dict[str, Found]) -> str:
    head = ["rows of"]
    shown = [name for name in NAMES if name in stores]
    head += [f"{NAMES[name]}, {when}" for name in shown for when in ("middle", "end")]
    names = stores[shown[0]]["rows"]["end"]
    lines = [
        [
            name,
            *(
                f"{stores[store]['rows'][when][name]:,}"
                for store in shown
                for when in ("middle", "end")
            ),
        ]
        for name in names
    ]
    return table(head, lines)
