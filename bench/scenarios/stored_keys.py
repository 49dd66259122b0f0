"""Stored keys: does a ledger of ten million keys claim as fast as one of ten thousand?"""

from contextlib import ExitStack
from math import nan

from bench.claiming import claimer_on
from bench.fill import fill
from bench.load import LoadFailed
from bench.results import Findings, Plan
from bench.rounds import run_round
from bench.stage import Stage

NAME = "stored-keys"


def run(stage: Stage, plan: Plan) -> Findings:
    """All ledgers are open at once and take turns; the smallest is what the others divide by."""
    findings = Findings(NAME)
    with ExitStack() as claimers:
        opened = {}
        for size in plan.stored_keys:
            print(f"  filling a ledger with {size:,} keys", flush=True)
            database = fill(stage.scratch / f"stored-{size}.db", live=size)
            opened[str(size)] = claimers.enter_context(claimer_on(database))

        def rate_of(size: str) -> float:
            try:
                found = opened[size].claim(plan.ledger_seconds)
            except LoadFailed as error:
                findings.entry(size).note(str(error))
                return nan
            findings.entry(size).samples.append(found)
            return found["rate"]

        for claimer in opened.values():
            # Not counted: after the filling, the first claims find nothing in memory.
            claimer.claim(plan.ledger_seconds)
        smallest, *larger = opened
        for number in range(plan.rounds):
            ratios = run_round(smallest, larger, number, rate_of, between=1)
            for stored, ratio in ratios.items():
                findings.entry(stored).ratios.append(ratio)
            figures = "  ".join(f"{int(stored):,}: {ratio:.2f}" for stored, ratio in ratios.items())
            print(f"  {NAME} {number + 1}/{plan.rounds}  {figures}", flush=True)
    return findings
