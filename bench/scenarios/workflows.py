"""Workflows: how many per second go from their start to their result, beside DBOS."""

from collections.abc import Iterator
from contextlib import suppress

from bench.flowing import OURS, Flows, compare, opened
from bench.load import LoadFailed
from bench.results import Findings, Plan
from bench.stage import Stage

NAME = "workflows"
STEPS = (1, 3)
# With 256 callers in line a peer's sample takes long; three rounds tell enough.
MOST_ROUNDS = 3
WARM_UP = (1, 32, 0.5)


def run(stage: Stage, plan: Plan) -> Findings:
    findings = Findings(NAME)
    rounds = min(plan.rounds, MOST_ROUNDS)
    with opened(stage) as engines:
        for products in engines.values():
            _warm_up(products)
        for number in range(rounds):
            for store, products in engines.items():
                for steps, concurrency in _loads(plan):
                    _round(findings, f"{store}/{steps}/{concurrency}", products, plan.seconds)
                _progress(findings, f"{number + 1}/{rounds}", store, plan)
    return findings


def _loads(plan: Plan) -> Iterator[tuple[int, int]]:
    return ((steps, concurrency) for steps in STEPS for concurrency in plan.concurrencies)


def _warm_up(products: dict[str, Flows]) -> None:
    """Who cannot run tells why when it is measured."""
    for flows in products.values():
        with suppress(LoadFailed):
            flows.run(*WARM_UP)


def _round(findings: Findings, cell: str, products: dict[str, Flows], seconds: float) -> None:
    _, steps, concurrency = cell.split("/")
    ratio = compare(
        findings,
        cell,
        products,
        "rate",
        lambda flows: flows.run(int(steps), int(concurrency), seconds),
    )
    if ratio:
        findings.entry(f"{OURS}/{cell}").ratios.append(1 / ratio)


def _progress(findings: Findings, which: str, store: str, plan: Plan) -> None:
    texts = []
    for steps, concurrency in _loads(plan):
        entry = findings.entry(f"{OURS}/{store}/{steps}/{concurrency}")
        if entry.samples:
            ratio = f" × {entry.ratios[-1]:.1f}" if entry.ratios else ""
            texts.append(f"{steps}/{concurrency} {entry.samples[-1]['rate']:,.0f}/s{ratio}")
    print(f"  {NAME} {which}  {store}  {'  '.join(texts)}", flush=True)
