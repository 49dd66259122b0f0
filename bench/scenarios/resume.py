"""Resume: the time from resolving what a workflow waits for to the workflow's next line."""

from bench.flowing import OURS, PEER, Flows, compare, opened
from bench.results import Findings, Plan
from bench.stage import Stage

NAME = "resume"
MOST_ROUNDS = 3


def run(stage: Stage, plan: Plan) -> Findings:
    """One workflow at a time, on an idle engine; the ratio is the peer's p50 over OnceKey's."""
    findings = Findings(NAME)
    rounds = min(plan.rounds, MOST_ROUNDS)
    with opened(stage, "soonest") as engines:
        for number in range(rounds):
            for store, products in engines.items():
                _round(findings, store, products, plan.resumes)
                texts = [
                    f"{product} {findings.entry(f'{product}/{store}').samples[-1]['p50_ms']:.1f} ms"
                    for product in (OURS, PEER)
                    if findings.entry(f"{product}/{store}").samples
                ]
                print(f"  {NAME} {number + 1}/{rounds}  {store}  {'  '.join(texts)}", flush=True)
    return findings


def _round(findings: Findings, store: str, products: dict[str, Flows], number: int) -> None:
    ratio = compare(findings, store, products, "p50_ms", lambda flows: flows.resume(number))
    if ratio:
        findings.entry(f"{OURS}/{store}").ratios.append(ratio)
