"""The command: python -m bench.console."""

import argparse
import os
import re
import tempfile
import time
from pathlib import Path

from bench import machine
from bench.console.asking import Timing, measure_all
from bench.console.filling import fill
from bench.console.paths import paths_of
from bench.console.rows import Amounts, Day
from bench.services import Postgres

HERE = Path(__file__).parent
_TOLD = ("cpu", "cores", "kernel", "sqlite", "commit")
EXAMPLES = """\
examples:
  python -m bench.console                              both stores, every path; about 6 minutes
  python -m bench.console --store sqlite --only keys   paths whose name has the word
  python -m bench.console --share 0.01                 a hundredth of the rows, to try it out
  python -m bench.console --store sqlite --keep /var/tmp/console   fill once, ask again later

A whole run writes bench/console/RESULTS.md; every other one only prints its table.
"""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.console",
        description="Fills a store with a million keys, and asks `oncekey serve` for every list.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--store", choices=("sqlite", "postgres"), help="only on this one")
    parser.add_argument("--only", metavar="REGEX", help="only paths whose name fits")
    parser.add_argument("--share", type=float, default=1.0, help="of the rows (default 1)")
    parser.add_argument("--rounds", type=int, default=20, help="requests for each path")
    parser.add_argument("--keep", metavar="DIR", help="keep the SQLite file there for next time")
    return parser.parse_args()


def _amounts(share: float) -> Amounts:
    return Amounts(*(max(200, int(each * share)) for each in Amounts()))


def _day(folder: Path, amounts: Amounts) -> Day:
    """The day a kept file was filled, or today."""
    noted = folder / "day"
    if not noted.exists():
        return Day(int(time.time() * 1000), amounts)
    return Day(int(noted.read_text()), amounts)


def _measure(store: str, folder: Path, arguments: argparse.Namespace) -> list[Timing]:
    day = _day(folder, _amounts(arguments.share))
    asked = paths_of(day)
    if arguments.only:
        asked = [each for each in asked if re.search(arguments.only, each.name)]
    postgres = Postgres(folder) if store == "postgres" else None
    url = postgres.new_url() if postgres else f"sqlite:///{folder}/console.db"
    try:
        if not (folder / "day").exists():
            began = time.monotonic()
            fill(url, day)
            print(f"{store}: filled in {time.monotonic() - began:.0f} s", flush=True)
            if postgres is None:
                (folder / "day").write_text(str(day.now))
        return measure_all(url, folder, asked, arguments.rounds)
    finally:
        if postgres:
            postgres.close()


def table_of(timings: list[Timing]) -> str:
    lines = [
        "| what is asked for | first | p50 | p95 | max | KiB |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for each in timings:
        odd = "" if each.status == each.asked.status else f" **{each.status}**"
        lines.append(
            f"| {each.asked.name}{odd} | {each.first:.1f} | {each.p50:.1f} | {each.p95:.1f} "
            f"| {each.longest:.1f} | {each.size / 1024:.0f} |"
        )
    return "\n".join(lines)


def _write(tables: dict[str, str], scratch: Path, amounts: Amounts) -> None:
    told = machine.describe(scratch)
    shown = ", ".join(f"{name} {told[name]}" for name in _TOLD)
    shown += f", load average {os.getloadavg()[0]:.1f} at the end"
    filled = ", ".join(f"{value:,} {name}" for name, value in amounts._asdict().items())
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    parts = [
        "# What operators look at\n",
        f"Milliseconds of requests to `oncekey serve`, one after the other, with {filled}.\n",
        f"Made by `python -m bench.console`, {when}: {shown}.\n",
        *(f"## {store}\n\n{table}\n" for store, table in tables.items()),
    ]
    (HERE / "RESULTS.md").write_text("\n".join(parts))
    print(f"Written: {HERE / 'RESULTS.md'}")


def main() -> None:
    arguments = _arguments()
    machine.warn_if_busy()
    tables = {}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        for store in (arguments.store,) if arguments.store else ("sqlite", "postgres"):
            # PostgreSQL may run as somebody else.
            Path(scratch).chmod(0o755)
            folder = Path(arguments.keep or f"{scratch}/{store}")
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o755)
            tables[store] = table_of(_measure(store, folder, arguments))
            print(f"\n{store}\n{tables[store]}\n", flush=True)
        whole = not (arguments.store or arguments.only) and arguments.share == 1.0
        if whole:
            _write(tables, Path(scratch), Amounts())


if __name__ == "__main__":
    main()
