"""`python -m tests.chaos`: break everything for some minutes, then check what everybody saw."""

import asyncio
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from tests.chaos import history
from tests.chaos.check import check
from tests.chaos.history import Event
from tests.chaos.jobs.requests import APP, BANK
from tests.chaos.report import summary, tell, troubles
from tests.chaos.rules import Violation
from tests.chaos.run import JOBS, Setting, run
from tests.chaos.site.databases import DATABASES

console = Console(soft_wrap=True)
Row = tuple[str, str, Sequence[Event], Sequence[Violation]]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--minutes", default=10.0, show_default=True, help="In all, for every store together."
)
@click.option(
    "--store", "stores", multiple=True, type=click.Choice(list(DATABASES)),
    help="Where the ledger is; several may be given.  [default: each]",
)  # fmt: skip
@click.option("--seed", help="Of an earlier run, to have the same jobs and troubles again.")
@click.option(
    "--job", "jobs", multiple=True, type=click.Choice(list(JOBS)), help="Only these kinds."
)
@click.option(
    "--place", "places", multiple=True, type=click.Choice([*APP, *BANK]),
    help="Where requests go; anywhere unless given.",
)  # fmt: skip
@click.option("--trouble", "deeds", multiple=True, help="Only these, such as kill, freeze or disk.")
@click.option(
    "--keep", type=click.Path(path_type=Path), default=Path("build/chaos"), show_default=True,
    help="Where histories and logs are put.",
)  # fmt: skip
@click.option(
    "--check", "checked", type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Run nothing; check this history again.",
)  # fmt: skip
def main(
    minutes: float,
    stores: tuple[str, ...],
    seed: str | None,
    jobs: tuple[str, ...],
    places: tuple[str, ...],
    deeds: tuple[str, ...],
    keep: Path,
    checked: Path | None,
) -> None:
    """Servers on each store, under callers that repeat, race and forge, are killed, frozen and cut
    off. Exit code 1 when a promise was broken; its shortest history is shown then.

    \b
    Examples:
      python -m tests.chaos
      python -m tests.chaos --store postgres --minutes 30
      python -m tests.chaos --store sqlite --seed 7 --trouble kill --trouble disk
      python -m tests.chaos --check build/chaos/sqlite-7.jsonl
    """
    if checked is not None:
        rows = [_judged(checked.stem, "", history.read(checked))]
    else:
        chosen = stores or tuple(DATABASES)
        drawn = seed or str(random.SystemRandom().randrange(1 << 32))
        seconds = minutes * 60 / len(chosen)
        rows = []
        for store in chosen:
            setting = Setting(store, seconds, drawn, kinds=jobs, places=places, deeds=deeds)
            setting = setting._replace(keep=keep / store)
            rows.append(_on(setting, keep))
    console.print(summary(rows))
    sys.exit(1 if any(violations for *_, violations in rows) else 0)


def _on(setting: Setting, keep: Path) -> Row:
    console.print(f"[bold]{setting.store}[/], seed {setting.seed}, {setting.seconds:.0f} s")
    began = time.monotonic()

    def say(text: str) -> None:
        console.print(f"  {time.monotonic() - began:6.0f} s  {text}", highlight=False)

    events = asyncio.run(run(setting, say)).events
    file = keep / f"{setting.store}-{setting.seed}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    history.write(file, events)
    say(f"troubles: {troubles(events)}")
    say(f"the history is in {file}")
    return _judged(setting.store, setting.seed, events)


def _judged(store: str, seed: str, events: Sequence[Event]) -> Row:
    violations = list(check(events))
    tell(console, events, violations)
    return store, seed, events, violations


if __name__ == "__main__":
    main()
