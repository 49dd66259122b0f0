"""The edge on Restate: the same load on every store, beside Restate's ingress asked directly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from math import nan
from secrets import token_hex

from bench.clusters import Cluster
from bench.fronts import KEYS, NEW, NOBODY, OLD, Front, sample_of, unfit
from bench.gateways import Caller, Gateways, Running
from bench.load import FAILURES, ORDERS, store_keys
from bench.results import Findings, Plan
from bench.rounds import run_round
from bench.services import ServiceFailed
from bench.stage import Stage

NAME = "restate"
SIZES = (1, 3)
DATABASES = ("sqlite", "postgres")
# Of the service that Restate calls, see `bench.apps.restate_orders`.
_ORDERS = "Orders/at_once"
_INGRESS = "/restate/call/"
_OK = 200

Fronts = dict[str, Front]


def run(stage: Stage, plan: Plan) -> Findings:
    findings = Findings(NAME)
    with ExitStack() as clusters, Gateways(stage.scratch, service_cpu=None) as gateways:
        fronts = _fronts(stage, gateways, clusters)
        for name, each in list(fronts.items()):
            if reason := unfit(gateways, each):
                findings.entry(name).note(f"not measured: {reason}")
                del fronts[name]
        _measure(findings, gateways, fronts, plan)
    return findings


def base_of(keys: str, size: int) -> str:
    """What everybody is compared with: the ingress of so many nodes."""
    return f"{keys}/ingress-{size}"


# -- the rounds --------------------------------------------------------------------------------


def _families() -> list[tuple[str, list[str]]]:
    """Who is compared with whom, and measured side by side; databases beside one node."""
    found = []
    for keys in (NEW, OLD):
        for size in SIZES:
            stores = [f"restate-{size}", *(DATABASES if size == 1 else ())]
            others = [f"{keys}/oncekey-{store}" for store in stores]
            others.append(f"{keys}/services-{size}")
            others += [f"{keys}/in-run-{size}"] if keys == NEW else []
            found.append((base_of(keys, size), others))
    return found


def _measure(findings: Findings, gateways: Gateways, fronts: Fronts, plan: Plan) -> None:
    for number in range(plan.rounds):
        rate = partial(_rate, findings, gateways, fronts, plan.seconds, number)
        for base, others in _families():
            if base not in fronts:
                continue
            ratios = run_round(base, [name for name in others if name in fronts], number, rate)
            for name, ratio in ratios.items():
                findings.entry(name).ratios.append(ratio)
            figures = "  ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
            print(f"  {NAME} {number + 1}/{plan.rounds}  {base} 1.00  {figures}", flush=True)


def _rate(
    findings: Findings, gateways: Gateways, fronts: Fronts, seconds: int, number: int, name: str
) -> float:
    entry, each = findings.entry(name), fronts[name]
    try:
        used = -each.cpu_seconds()
        sample, wrong = sample_of(gateways, each, seconds)
        used += each.cpu_seconds()
    except (*FAILURES, ServiceFailed) as error:
        entry.note(f"failed under load: {type(error).__name__} {error}")
        return nan
    if not sample.requests:
        entry.note(f"answered nothing for {seconds} s in a round")
        return nan
    cpu = used / sample.requests * 1e6
    entry.samples.append({**sample.figures(), "cpu_us": cpu, "round": number})
    if wrong:
        entry.note(f"the service was asked {wrong:+d} times too often in a round")
    return sample.rate


# -- who can be asked --------------------------------------------------------------------------


def _fronts(stage: Stage, gateways: Gateways, clusters: ExitStack) -> Fronts:
    """Those that can run here; `stage.absent` says why the others cannot."""
    found: Fronts = {}

    def add(name: str, start: Callable[[], Fronts]) -> None:
        try:
            found.update(start())
        except (*FAILURES, ServiceFailed) as error:
            stage.absent[name] = str(error) or type(error).__name__

    for store in DATABASES:
        add(f"oncekey-{store}", partial(_on_database, stage, gateways, store))
    for size in SIZES:
        cluster = Cluster(stage.scratch, size)
        clusters.callback(cluster.close)
        service = gateways.restate_service(f"orders-{cluster.size}")
        add(f"ingress-{size}", partial(_ingress, cluster, service))
        add(f"oncekey-restate-{size}", partial(_on_restate, gateways, cluster))
        add(f"services-{size}", partial(_before_services, stage, gateways, cluster, service))
    return found


def _on_database(stage: Stage, gateways: Gateways, store: str) -> Fronts:
    return _oncekey(gateways, stage.new_database(store), store)


def _on_restate(gateways: Gateways, cluster: Cluster) -> Fronts:
    return _oncekey(gateways, cluster.url("bench"), f"restate-{cluster.size}", *cluster.nodes)


def _ingress(cluster: Cluster, service: Running) -> Fronts:
    cluster.register(service.port)
    first, *others = cluster.nodes
    path, size = f"{_INGRESS}{_ORDERS}", cluster.size
    old = _stored(first.port, path)
    asks = (*others, service)

    def front(keys: str, path: str, prefix: str = "") -> Front:
        return Front(first, NOBODY, keys, prefix, asks, path=path, status=_OK, load_cpu=None)

    return {
        base_of(NEW, size): front(NEW, path),
        base_of(OLD, size): front(OLD, path, old),
        f"{NEW}/in-run-{size}": front(NEW, f"{_INGRESS}Orders/in_run"),
    }


def _before_services(
    stage: Stage, gateways: Gateways, cluster: Cluster, service: Running
) -> Fronts:
    """OnceKey in front of the very service that the ingress is asked for, its keys in SQLite."""
    name = f"services-{cluster.size}"
    upstream = cluster.service_url(_ORDERS)
    database = stage.new_database("sqlite")
    running, caller = gateways.oncekey(database, name, cpu=None, upstream=upstream)
    old = _stored(running.port, ORDERS, caller)

    def front(keys: str, prefix: str = "") -> Front:
        asks = (*cluster.nodes, service)
        return Front(running, caller, keys, prefix, asks, status=_OK, load_cpu=None)

    return {f"{NEW}/{name}": front(NEW), f"{OLD}/{name}": front(OLD, old)}


def _oncekey(gateways: Gateways, url: str, store: str, *nodes: Running) -> Fronts:
    running, caller = gateways.oncekey(url, f"oncekey-{store}", cpu=None)
    old = _stored(running.port, ORDERS, caller)
    return {
        f"{NEW}/oncekey-{store}": Front(running, caller, NEW, asks=nodes, load_cpu=None),
        f"{OLD}/oncekey-{store}": Front(running, caller, OLD, old, nodes, load_cpu=None),
    }


def _stored(port: int, path: str, caller: Caller = NOBODY) -> str:
    """The prefix of keys that are answered from now on as they were."""
    prefix = token_hex(6)
    asyncio.run(store_keys(port, prefix, KEYS, lines=caller.line, path=path))
    return prefix
