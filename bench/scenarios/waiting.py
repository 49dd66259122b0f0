"""Waiting: memory of a process with many waiting workflows, and its start after kill -9."""

from functools import partial

from bench.flowing import OURS, Flows, databases, sample
from bench.results import Findings, Plan
from bench.stage import Stage

NAME = "waiting"


def run(stage: Stage, plan: Plan) -> Findings:
    """The peer would take minutes for as many as OnceKey: it has fewer, and the report scales."""
    findings = Findings(NAME)
    for store, product, url in databases(stage):
        number = plan.waiting if product == OURS else plan.waiting_of_peer
        measure = partial(_measure, stage, product, url, number)
        found = sample(findings, f"{product}/{store}", measure)
        if found:
            print(
                f"  {NAME}  {product} ({store})  {number:,}: {found['waiting_mb']:.0f} MB, "
                f"start in {found['start_seconds']:.2f} s",
                flush=True,
            )
    return findings


def _measure(stage: Stage, product: str, url: str, number: int) -> dict[str, float]:
    with Flows(stage.scratch, product, url) as flows:
        flows.revive(0)
        empty_seconds = flows.age
        filled = flows.fill(number)
        flows.kill()
    with Flows(stage.scratch, product, url) as flows:
        revived = flows.revive(number)
        start_seconds = flows.age
    return {
        "waiting": number,
        "fill_seconds": filled["seconds"],
        "empty_mb": filled["empty_mb"],
        "waiting_mb": filled["resident_mb"],
        "started_mb": revived["resident_mb"],
        "empty_seconds": empty_seconds,
        "start_seconds": start_seconds,
        "wrong": revived["wrong"],
    }
