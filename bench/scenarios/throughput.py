"""Rounds of wrk over all families: what new keys and replays have in common."""

from collections.abc import Callable
from math import nan

from bench.load import FAILURES, Sample
from bench.results import Findings, Plan
from bench.rounds import run_round
from bench.services import ServiceFailed
from bench.serving import Server
from bench.stage import Stage


def measure_rounds(
    name: str, stage: Stage, plan: Plan, sample_of: Callable[[Server], tuple[Sample, int]]
) -> Findings:
    """`sample_of` loads one server once and says how many runs of the handler were wrong."""
    findings = Findings(name)

    def rate_of(contender: str) -> float:
        server = stage.servers[contender]
        entry = findings.entry(contender)
        try:
            sample, wrong_runs = sample_of(server)
        except (*FAILURES, ServiceFailed) as error:
            server.refused[name] = f"failed under load: {type(error).__name__} {error}"
            return nan
        entry.samples.append(sample.figures())
        if wrong_runs and not server.contender.is_bare:
            entry.note(f"the handler ran {wrong_runs:+d} times too often in a round")
        return sample.rate

    for number in range(plan.rounds):
        for bare, others in stage.families(name):
            ratios = run_round(bare, others, number, rate_of)
            for contender, ratio in ratios.items():
                findings.entry(contender).ratios.append(ratio)
            _progress(name, number, plan.rounds, bare, ratios)
    for contender, reason in stage.refusals(name).items():
        findings.entry(contender).note(f"not measured: {reason}")
    return findings


def _progress(name: str, number: int, rounds: int, bare: str, ratios: dict[str, float]) -> None:
    figures = "  ".join(
        f"{contender.split(':')[1]} {ratio:.2f}" for contender, ratio in ratios.items()
    )
    print(f"  {name} {number + 1}/{rounds}  {bare} 1.00  {figures}", flush=True)
