"""The command: python -m bench.scale."""

import argparse
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import machine
from bench.scale import growth, plots, promises, report, soak, sweep, workflows
from bench.scale.places import STORES
from bench.scale.sizes import Sizes
from bench.scale.stage import Found, Stage
from bench.stage import Stage as Scratch

HERE = Path(__file__).parent
PARTS = ("growth", "sweep", "promises", "workflows", "soak")
EXAMPLES = """\
examples:
  python -m bench.scale                              both stores, everything; about two hours
  python -m bench.scale --store sqlite --only growth sweep
  python -m bench.scale --keys 100000 --promises 10000 --workflows 1000 --soak-minutes 1
  python -m bench.scale --redraw                     report what was measured last again

With the sizes that are the default, what was measured takes the place of what bench/scale has of
the same part and store; with any other, it goes to bench/out/scale.
"""


def _arguments(given: list[str] | None) -> argparse.Namespace:
    default = Sizes()
    parser = argparse.ArgumentParser(
        prog="python -m bench.scale",
        description="Measures millions of keys and promises, many workflows, and a long soak.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--store", choices=(*STORES, "all"), default="all")
    parser.add_argument("--keys", type=int, default=default.keys)
    parser.add_argument("--promises", type=int, default=default.promises)
    parser.add_argument("--workflows", type=int, default=default.workflows)
    parser.add_argument("--soak-minutes", type=float, default=default.soak_minutes)
    parser.add_argument(
        "--soak-rate", type=float, default=default.soak_rate, help="requests a second"
    )
    parser.add_argument("--seconds", type=float, default=default.seconds, help="of each sample")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument("--scratch", metavar="DIR", help="folder on the disk (default /var/tmp)")
    parser.add_argument("--out", metavar="DIR", type=Path, help="where the results go")
    parser.add_argument("--redraw", action="store_true", help="measure nothing")
    return parser.parse_args(given)


def _sizes(arguments: argparse.Namespace) -> Sizes:
    names = ("keys", "promises", "workflows", "soak_minutes", "seconds", "soak_rate")
    return Sizes(**{name: getattr(arguments, name) for name in names})


def measure(stage: Stage, parts: tuple[str, ...]) -> Iterator[tuple[str, Found]]:
    """Each part on its own database; a sweep takes the one that has grown, if there is one."""
    for name, part in (("promises", promises), ("workflows", workflows)):
        if name in parts:
            yield name, part.run(stage)
    place = None
    if "growth" in parts:
        grown, place = growth.run(stage)
        yield "growth", grown
    if "sweep" in parts:
        yield "sweep", sweep.run(stage, place)
    if "soak" in parts:
        yield "soak", soak.run(stage)


def _keep(folder: Path, stage: Stage, part: str, found: Found) -> None:
    """Read again before it is written: the other store may have been measured meanwhile."""
    path = folder / "results.json"
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    results.setdefault(part, {})[stage.store] = found
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")
    write(folder)


def write(folder: Path) -> None:
    results = json.loads((folder / "results.json").read_text())
    plots.draw(results, folder)
    (folder / "RESULTS.md").write_text(report.text_of(results))
    print(f"Written: {folder / 'RESULTS.md'}", flush=True)


def main(given: list[str] | None = None) -> None:
    arguments = _arguments(given)
    sizes = _sizes(arguments)
    folder = arguments.out or (HERE if sizes == Sizes() else HERE.parent / "out" / "scale")
    if arguments.redraw:
        write(folder)
        return
    machine.warn_if_busy()
    for store in STORES if arguments.store == "all" else (arguments.store,):
        with Scratch(arguments.scratch) as scratch:
            stage = Stage(scratch.scratch, store, sizes, scratch.new_database, time.monotonic())
            about = {
                **machine.describe(scratch.scratch),
                "started": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
                "sizes": asdict(sizes),
            }
            for part, found in measure(stage, tuple(arguments.only)):
                after = {"load average after": f"{os.getloadavg()[0]:.2f}"}
                _keep(folder, stage, part, {**found, "about": {**about, **after}})


if __name__ == "__main__":
    main()
