"""Sweep: how much longer does a claim take while expired keys are deleted?"""

from pathlib import Path
from shutil import copyfile

from bench.claiming import claimer_on
from bench.fill import fill
from bench.results import Findings, Plan
from bench.stage import Stage

NAME = "sweep"
LIVE_KEYS = 100_000
PERCENTILES = ("p50", "p99")


def run(stage: Stage, plan: Plan) -> Findings:
    """Each round starts from the same file, measures before, during and after one whole sweep."""
    findings = Findings(NAME)
    print(f"  filling a ledger with {plan.expired_keys:,} expired keys", flush=True)
    filled = fill(stage.scratch / "expired.db", live=LIVE_KEYS, expired=plan.expired_keys)
    for number in range(plan.sweeps):
        database = stage.scratch / f"sweep-{number}.db"
        copyfile(filled, database)
        _round(findings, database, plan)
        texts = [f"{each} × {findings.entry(each).ratios[-1]:.2f}" for each in PERCENTILES]
        print(f"  {NAME} {number + 1}/{plan.sweeps}  {'  '.join(texts)}", flush=True)
        database.unlink()
    return findings


def _round(findings: Findings, database: Path, plan: Plan) -> None:
    with claimer_on(database) as claimer:
        claimer.claim(plan.ledger_seconds)
        before = claimer.claim(plan.ledger_seconds)
        during = claimer.claim_while_sweeping()
        after = claimer.claim(plan.ledger_seconds)
    for percentile in PERCENTILES:
        without = (before[f"{percentile}_ms"] + after[f"{percentile}_ms"]) / 2
        entry = findings.entry(percentile)
        entry.ratios.append(during[f"{percentile}_ms"] / without)
        entry.samples.append(
            {
                "without_ms": without,
                "during_ms": during[f"{percentile}_ms"],
                "swept": during["swept"],
                "seconds": during["seconds"],
            }
        )
