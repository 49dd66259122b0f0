"""Duplicates: 64 callers send one key at the same moment; all want the one answer, soon."""

from math import nan
from secrets import token_hex
from statistics import median

import uvloop

from bench.load import FAILURES, Burst, burst, connect
from bench.results import Findings, Plan
from bench.rounds import run_round
from bench.serving import Server
from bench.stage import Stage

NAME = "duplicates"
# Each round is already the median of many bursts.
MOST_ROUNDS = 3


def run(stage: Stage, plan: Plan) -> Findings:
    findings = Findings(NAME)

    def last_answer_of(contender: str) -> float:
        server = stage.servers[contender]
        entry = findings.entry(contender)
        try:
            figures = _figures(server, plan.bursts)
        except FAILURES as error:
            server.refused[NAME] = f"failed under load: {type(error).__name__} {error}"
            return nan
        entry.samples.append(figures)
        if figures["runs_per_key"] != 1 and not server.contender.is_bare:
            entry.note(f"the handler ran {figures['runs_per_key']:g} times per key")
        if figures["failures"]:
            entry.note(f"{figures['failures']:g} callers got an error as final answer")
        return figures["last_answer_ms"]

    rounds = min(plan.rounds, MOST_ROUNDS)
    for number in range(rounds):
        for bare, others in stage.families(NAME):
            ratios = run_round(bare, others, number, last_answer_of)
            for contender, ratio in ratios.items():
                findings.entry(contender).ratios.append(ratio)
            _progress(number, rounds, bare, findings, list(ratios))
    for contender, reason in stage.refusals(NAME).items():
        findings.entry(contender).note(f"not measured: {reason}")
    return findings


def _figures(server: Server, bursts: int) -> dict[str, float]:
    before = server.runs()
    found = _run_bursts(server, bursts)
    return {
        "last_answer_ms": median(each.last_answer_ms for each in found),
        "slowest_ms": max(each.last_answer_ms for each in found),
        "requests": sum(each.requests for each in found) / len(found),
        "conflicts": sum(each.conflicts for each in found) / len(found),
        "failures": sum(each.failures for each in found),
        "runs_per_key": (server.runs() - before) / (bursts + 1),
    }


def _run_bursts(server: Server, number: int) -> list[Burst]:
    async def all_bursts() -> list[Burst]:
        connections = await connect(server.port)
        try:
            # The first burst warms the connections; it counts for the runs, not for the time.
            await burst(connections, "/slow", token_hex(8))
            return [await burst(connections, "/slow", token_hex(8)) for _ in range(number)]
        finally:
            for connection in connections:
                connection.close()

    return uvloop.run(all_bursts())


def _progress(number: int, rounds: int, bare: str, findings: Findings, others: list[str]) -> None:
    texts = [
        f"{name.split(':')[1]} {findings.entry(name).samples[-1]['last_answer_ms']:.0f} ms"
        for name in (bare, *others)
        if findings.entry(name).samples
    ]
    framework, _ = bare.split(":")
    print(f"  {NAME} {number + 1}/{rounds}  {framework}  {'  '.join(texts)}", flush=True)
