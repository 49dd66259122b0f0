"""The edge: what everybody in front of the same service hands on, beside nginx with one worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import nan
from secrets import token_hex

from bench.fronts import KEYS, NEW, OLD, Front, sample_of, unfit
from bench.gateways import Gateways, bearer
from bench.load import FAILURES, store_keys
from bench.machine import LOAD_CPU
from bench.results import Findings, Plan
from bench.rounds import run_round
from bench.services import ServiceFailed
from bench.stage import Stage

NAME = "edge"
NGINX = "nginx"


def run(stage: Stage, plan: Plan) -> Findings:
    findings = Findings(NAME)
    with Gateways(stage.scratch) as gateways:
        contenders = _contenders(stage, gateways)
        if NGINX not in contenders:
            raise ServiceFailed(stage.absent[NGINX])
        for name, each in list(contenders.items()):
            if reason := unfit(gateways, each):
                findings.entry(name).note(f"not measured: {reason}")
                del contenders[name]
        _measure(findings, gateways, contenders, plan)
    return findings


def _measure(
    findings: Findings, gateways: Gateways, contenders: dict[str, Front], plan: Plan
) -> None:
    def rate_of(name: str) -> float:
        entry, each = findings.entry(name), contenders[name]
        try:
            used = -each.cpu_seconds()
            sample, wrong = sample_of(gateways, each, plan.seconds)
            used += each.cpu_seconds()
        except (*FAILURES, ServiceFailed) as error:
            entry.note(f"failed under load: {type(error).__name__} {error}")
            return nan
        figures = {**sample.figures(), "cpu_us": used / sample.requests * 1e6}
        entry.samples.append(figures)
        if wrong:
            entry.note(f"the service was asked {wrong:+d} times too often in a round")
        return sample.rate

    others = [name for name in contenders if name != NGINX]
    for number in range(plan.rounds):
        ratios = run_round(NGINX, others, number, rate_of)
        for name, ratio in ratios.items():
            findings.entry(name).ratios.append(ratio)
        figures = "  ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
        print(f"  {NAME} {number + 1}/{plan.rounds}  {NGINX} 1.00  {figures}", flush=True)


def _contenders(stage: Stage, gateways: Gateways) -> dict[str, Front]:
    """Those that can run here; `stage.absent` says why the others cannot."""
    found: dict[str, Front] = {}

    def add(name: str, start: Callable[[], dict[str, Front]]) -> None:
        try:
            found.update(start())
        except (OSError, ServiceFailed) as error:
            stage.absent[name] = str(error)

    add(NGINX, lambda: {NGINX: Front(gateways.nginx())})
    add("bare", lambda: {"bare": Front(gateways.bare(), alone=True)})
    add("caddy", lambda: {"caddy": Front(gateways.caddy())})
    add("decide", lambda: _deciding(stage, gateways))
    add("oncekey", lambda: _on_sqlite(stage, gateways))
    add("oncekey-postgres", lambda: _on_postgres(stage, gateways))
    found["service"] = Front(gateways.service)
    return found


def _deciding(stage: Stage, gateways: Gateways) -> dict[str, Front]:
    beside, caller = gateways.oncekey(stage.new_database("sqlite"), "deciding", LOAD_CPU)
    together, other = gateways.oncekey(stage.new_database("sqlite"), "deciding-together")
    return {
        "nginx-decide": Front(gateways.nginx_deciding(beside, "asking"), caller, asks=(beside,)),
        "nginx-decide-together": Front(
            gateways.nginx_deciding(together, "asking-together"), other, asks=(together,)
        ),
    }


def _on_sqlite(stage: Stage, gateways: Gateways) -> dict[str, Front]:
    running, caller = gateways.oncekey(stage.new_database("sqlite"), "oncekey-sqlite")
    prefix = token_hex(6)
    asyncio.run(store_keys(running.port, prefix, KEYS, lines=caller.line))
    return {
        "oncekey-pass": Front(running, caller),
        "oncekey-pass-jwt": Front(running, bearer()),
        "oncekey-new-sqlite": Front(running, caller, NEW),
        "oncekey-replays": Front(running, caller, OLD, prefix),
    }


def _on_postgres(stage: Stage, gateways: Gateways) -> dict[str, Front]:
    running, caller = gateways.oncekey(stage.new_database("postgres"), "oncekey-postgres")
    return {"oncekey-new-postgres": Front(running, caller, NEW)}
