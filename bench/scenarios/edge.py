"""The edge: what everybody in front of the same service hands on, beside nginx with one worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from secrets import token_hex

from bench.gateways import Caller, Gateways, Running, ask, bearer
from bench.load import CONNECTIONS, FAILURES, Sample, store_keys, wrk
from bench.machine import LOAD_CPU
from bench.results import Findings, Plan
from bench.rounds import run_round
from bench.services import ServiceFailed
from bench.stage import Stage

NAME = "edge"
NGINX = "nginx"
KEYS = 256
WARM_UP_SECONDS = 1
ORDERS = "/orders"
NOBODY = Caller("X-API-Key", "nobody")
"""What those are sent that ask nobody who calls, so that all read as much."""


@dataclass(frozen=True)
class Contender:
    """`keys`: none, new ones, or old ones that were answered before."""

    running: Running
    caller: Caller = NOBODY
    keys: str = ""
    prefix: str = ""
    asks: Running | None = None
    """Who else works for it, beside the service."""
    alone: bool = False
    """Whether it answers itself; the service must not be asked."""

    def cpu_seconds(self) -> float:
        return self.running.cpu_seconds() + (self.asks.cpu_seconds() if self.asks else 0)

    @property
    def arguments(self) -> list[str]:
        said = [self.caller.header, self.caller.value]
        if self.keys == "new":
            return [*said, "new", token_hex(6)]
        return [*said, "old", self.prefix, str(KEYS)] if self.keys else said


def run(stage: Stage, plan: Plan) -> Findings:
    findings = Findings(NAME)
    with Gateways(stage.scratch) as gateways:
        contenders = _contenders(stage, gateways)
        if NGINX not in contenders:
            raise ServiceFailed(stage.absent[NGINX])
        for name, each in list(contenders.items()):
            if reason := _unfit(gateways, each):
                findings.entry(name).note(f"not measured: {reason}")
                del contenders[name]
        _measure(findings, gateways, contenders, plan)
    return findings


def _measure(
    findings: Findings, gateways: Gateways, contenders: dict[str, Contender], plan: Plan
) -> None:
    def rate_of(name: str) -> float:
        entry, each = findings.entry(name), contenders[name]
        try:
            used = -each.cpu_seconds()
            sample, wrong = _sample(gateways, each, plan.seconds)
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


def _sample(gateways: Gateways, each: Contender, seconds: int) -> tuple[Sample, int]:
    """With how often the service was asked beyond what its answers explain."""
    before = gateways.runs()
    sample = wrk(each.running.port, "edge.lua", seconds, *each.arguments)
    asked = gateways.runs() - before
    if each.keys == "old" or each.alone:
        return sample, asked
    extra = asked - (sample.requests - sample.refused)
    # Up to one request per connection is under way when wrk stops counting.
    return sample, 0 if 0 <= extra <= CONNECTIONS else extra


def _contenders(stage: Stage, gateways: Gateways) -> dict[str, Contender]:
    """Those that can run here; `stage.absent` says why the others cannot."""
    found: dict[str, Contender] = {}

    def add(name: str, start: Callable[[], dict[str, Contender]]) -> None:
        try:
            found.update(start())
        except (OSError, ServiceFailed) as error:
            stage.absent[name] = str(error)

    add(NGINX, lambda: {NGINX: Contender(gateways.nginx())})
    add("bare", lambda: {"bare": Contender(gateways.bare(), alone=True)})
    add("caddy", lambda: {"caddy": Contender(gateways.caddy())})
    add("decide", lambda: _deciding(stage, gateways))
    add("oncekey", lambda: _on_sqlite(stage, gateways))
    add("oncekey-postgres", lambda: _on_postgres(stage, gateways))
    found["service"] = Contender(gateways.service)
    return found


def _deciding(stage: Stage, gateways: Gateways) -> dict[str, Contender]:
    beside, caller = gateways.oncekey(stage.new_database("sqlite"), "deciding", LOAD_CPU)
    together, other = gateways.oncekey(stage.new_database("sqlite"), "deciding-together")
    return {
        "nginx-decide": Contender(gateways.nginx_deciding(beside, "asking"), caller, asks=beside),
        "nginx-decide-together": Contender(
            gateways.nginx_deciding(together, "asking-together"), other, asks=together
        ),
    }


def _on_sqlite(stage: Stage, gateways: Gateways) -> dict[str, Contender]:
    running, caller = gateways.oncekey(stage.new_database("sqlite"), "oncekey-sqlite")
    prefix = token_hex(6)
    lines = f"{caller.header}: {caller.value}\r\n"
    asyncio.run(store_keys(running.port, prefix, KEYS, lines=lines))
    return {
        "oncekey-pass": Contender(running, caller),
        "oncekey-pass-jwt": Contender(running, bearer()),
        "oncekey-new-sqlite": Contender(running, caller, "new"),
        "oncekey-replays": Contender(running, caller, "old", prefix),
    }


def _on_postgres(stage: Stage, gateways: Gateways) -> dict[str, Contender]:
    running, caller = gateways.oncekey(stage.new_database("postgres"), "oncekey-postgres")
    return {"oncekey-new-postgres": Contender(running, caller, "new")}


def _unfit(gateways: Gateways, each: Contender) -> str:
    """Why it is not measured: it does not do what its figure would claim."""
    before = gateways.runs()
    key = f"probe-{token_hex(4)}" if each.keys else ""
    try:
        answers = [ask(each.running.port, "POST", ORDERS, each.caller, key) for _ in range(2)]
        asked = gateways.runs() - before
        wrk(each.running.port, "edge.lua", WARM_UP_SECONDS, *each.arguments)
    except (*FAILURES, ServiceFailed) as error:
        return str(error)
    if any(status != 201 for status, _ in answers):
        return f"it answers {[status for status, _ in answers]}"
    wanted = 0 if each.alone else 1 if key else 2
    return "" if asked == wanted else f"the service is asked {asked} times, not {wanted}"
