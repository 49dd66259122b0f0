"""Drives processes that run workflows: OnceKey and its peer, on both databases."""

import importlib.util
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from math import nan
from pathlib import Path

from bench.load import LoadFailed
from bench.results import Findings
from bench.rounds import run_round
from bench.services import ServiceFailed
from bench.stage import Stage
from bench.working import Worker

OURS, PEER = "oncekey", "dbos"
STORES = ("sqlite", "postgres")
MISTAKES = {
    "wrong": "workflows ended with a wrong value",
    "extra_steps": "steps too many or too few ran",
}

_logs = count()


class Flows(Worker):
    """One process with one engine open; see bench/apps/flows.py for the orders it takes."""

    def __init__(self, scratch: Path, product: str, url: str, *options: str) -> None:
        self._started = time.monotonic()
        log = scratch / f"flows-{product}-{next(_logs)}.log"
        super().__init__("flows", [product, url, *options], log)

    @property
    def age(self) -> float:
        """Seconds since the process was started."""
        return time.monotonic() - self._started

    def run(self, steps: int, concurrency: int, seconds: float) -> dict[str, float]:
        return self.order("run", steps, concurrency, seconds)

    def resume(self, number: int) -> dict[str, float]:
        return self.order("resume", number)

    def fill(self, number: int) -> dict[str, float]:
        return self.order("fill", number)

    def revive(self, number: int) -> dict[str, float]:
        return self.order("revive", number)

    def wake(self, first: int, last: int) -> dict[str, float]:
        return self.order("wake", first, last)

    def rest(self, seconds: float) -> dict[str, float]:
        return self.order("rest", seconds)


def databases(stage: Stage) -> Iterator[tuple[str, str, str]]:
    """Store, product and an empty database, for each that can run here; ours before the peer."""
    for store in STORES:
        for product in (OURS, PEER):
            if importlib.util.find_spec(product) is None:
                stage.absent[product] = f"not installed: {product}"
                continue
            try:
                yield store, product, stage.new_database(store)
            except ServiceFailed as error:
                stage.absent[f"{product} ({store})"] = str(error)


@contextmanager
def opened(stage: Stage, *options: str) -> Iterator[dict[str, dict[str, Flows]]]:
    """Every engine at once, by store and product: idle ones cost next to nothing."""
    found: dict[str, dict[str, Flows]] = {}
    with ExitStack() as processes:
        for store, product, url in databases(stage):
            flows = processes.enter_context(Flows(stage.scratch, product, url, *options))
            found.setdefault(store, {})[product] = flows
        yield found


def sample(
    findings: Findings, name: str, order: Callable[[], dict[str, float]]
) -> dict[str, float] | None:
    """What an order answered, kept; whatever is wrong with it is noted beside it."""
    entry = findings.entry(name)
    try:
        found = order()
    except LoadFailed as error:
        entry.note(f"not measured: {error}")
        return None
    entry.samples.append(found)
    for figure, text in MISTAKES.items():
        if found.get(figure):
            entry.note(f"{found[figure]:g} {text}")
    return found


def compare(
    findings: Findings,
    cell: str,
    products: dict[str, Flows],
    figure: str,
    order: Callable[[Flows], dict[str, float]],
) -> float | None:
    """The peer between two samples of OnceKey; the peer's figure over the mean of these two."""

    def figure_of(product: str) -> float:
        found = sample(findings, f"{product}/{cell}", lambda: order(products[product]))
        return found[figure] if found else nan

    peers = [PEER] if PEER in products else []
    return run_round(OURS, peers, 0, figure_of).get(PEER)
