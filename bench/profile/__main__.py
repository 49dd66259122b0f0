"""The command: python -m bench.profile."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import machine
from bench.clusters import Cluster
from bench.profile import report
from bench.profile.walks import WALKS
from bench.services import Postgres, ServiceFailed

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 5
# Under what is slow, fewer are enough: these are counts, which hardly differ.
COUNTED = {"calls": 1000, "syscalls": 1000, "allocations": 300}
EXAMPLES = """\
examples:
  python -m bench.profile                           every walk; about 6 minutes
  python -m bench.profile --against HEAD~5          beside another commit, in turns; twice as long
  python -m bench.profile --only edge-new webhook   these walks, written to bench/out
"""


class Stores:
    """Databases of the walks, started when the first of them needs one."""

    def __init__(self, folder: Path, ends: ExitStack) -> None:
        self._folder, self._ends = folder, ends
        self._postgres: Postgres | None = None
        self._cluster: Cluster | None = None
        self._spaces = 0

    def new_url(self, store: str) -> str | None:
        """None where the walk makes its own."""
        match store:
            case "postgres":
                if self._postgres is None:
                    self._postgres = Postgres(self._folder)
                    self._ends.callback(self._postgres.close)
                return self._postgres.new_url()
            case "restate":
                if self._cluster is None:
                    self._cluster = Cluster(self._folder, 1)
                    self._ends.callback(self._cluster.close)
                self._spaces += 1
                return self._cluster.url(f"walk{self._spaces}")
            case _:
                return None


def _walked(tree: Path, walk: str, times: int, under: str, store: str | None) -> dict[str, object]:
    """One process, with the package of `tree` and these walks."""
    words = [walk, str(times), "--under", under, *(["--store", store] if store else [])]
    run = subprocess.run(
        [sys.executable, "-m", "bench.profile.walking", *words],
        env={**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise ServiceFailed(f"{walk} under {under}: {run.stderr.strip()[-500:]}")
    found: dict[str, object] = json.loads(run.stdout.splitlines()[-1])
    return found


def _figures(tree: Path, walk: str, times: int, under: str, stores: Stores) -> dict[str, float]:
    found = _walked(tree, walk, times, under, stores.new_url(WALKS[walk].store))
    figures = found["figures"]
    assert isinstance(figures, dict)
    return figures


def _found(walk: str, trees: list[Path], asked: argparse.Namespace, stores: Stores) -> report.Found:
    """`trees`: ours, and the one it is compared with, if any."""
    rounds: list[list[dict[str, float]]] = [[] for _ in trees]
    most = asked.times or WALKS[walk].times
    for number in range(asked.rounds):
        for place in range(len(trees)) if number % 2 else reversed(range(len(trees))):
            rounds[place].append(_figures(trees[place], walk, most, "clock", stores))
    for place, tree in enumerate(trees):
        for under, times in COUNTED.items():
            rounds[place].append(_figures(tree, walk, min(times, most), under, stores))
    store = stores.new_url(WALKS[walk].store)
    folded = str(_walked(trees[0], walk, most, "stacks", store)["folded"])
    return report.Found(walk, rounds[0], rounds[1] if len(rounds) > 1 else [], folded)


@contextmanager
def _trees(against: str | None) -> Iterator[list[Path]]:
    if against is None:
        yield [ROOT]
        return
    with tempfile.TemporaryDirectory(prefix="oncekey-before-") as folder:
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", "--quiet", folder, against], check=True)
        try:
            yield [ROOT, Path(folder)]
        finally:
            subprocess.run([*git, "remove", "--force", folder], check=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.profile",
        description="Says where the time of one request goes, walk by walk.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=tuple(WALKS), default=None, metavar="WALK")
    parser.add_argument("--against", metavar="COMMIT", help="measure this one beside it")
    parser.add_argument("--times", type=int, help="walks in a round; each has its own number")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    return parser.parse_args()


def _commit_of(name: str | None) -> str:
    if name is None:
        return ""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    asked = _arguments()
    started = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    found = []
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        folder.chmod(0o755)
        known = machine.describe(folder)
        trees = ends.enter_context(_trees(asked.against))
        stores = Stores(folder, ends)
        for walk in asked.only or WALKS:
            print(f"{walk}: {WALKS[walk].title}", flush=True)
            try:
                found.append(_found(walk, trees, asked, stores))
            except ServiceFailed as error:
                print(f"  left out: {error}")
    whole = not asked.only and not asked.times and asked.rounds == ROUNDS
    out = ROOT / "bench" / ("." if whole else "out")
    out.mkdir(exist_ok=True)
    words = f" --against {_commit_of(asked.against)}" if asked.against else ""
    against = _commit_of(asked.against)
    report.write(report.Run(words, started, known, against, asked.rounds), found, out.resolve())
    print(f"Written: {out.resolve() / 'PROFILE.md'}")


if __name__ == "__main__":
    main()
