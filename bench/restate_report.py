"""The section of the report about the edge on Restate: beside its ingress, and beside databases."""

from statistics import mean

from bench.results import Entry, Findings
from bench.rounds import spread_of as spread
from bench.tables import latency_of, shares_of, spread_of, table, unmeasured

CONDITIONS = """\
- No process is held on a core: Restate, OnceKey, the services and the load generator share both, so
  that a rate says what a request costs altogether.
- Restate asked directly is a service of its SDK that asks the same service behind OnceKey does,
  through the same connections, over HTTP/1.1 with its journal not kept: the fastest way found. At
  once is the faster of the two ways and what ratios divide by; an invocation that is tried again
  asks again. `ctx.run` is the way of Restate's documentation.
- OnceKey on Restate keeps keys there and asks the service itself, through Restate. OnceKey before
  the same service has the service of Restate's SDK as the upstream of a route, and its keys in
  SQLite: what the ingress is asked for directly, it is asked for through the edge.
- Restate alone compares no bodies, knows no callers and marks no replays; what OnceKey adds is in
  its figures.
- One node, and three nodes that keep two copies, all on this machine; four partitions, as is
  fastest here. OnceKey's process is also the one that Restate calls back.
- The service is nginx, which answers 201 with 24 bytes at once. 64 keep-alive connections from wrk;
  every request is a POST with 23 bytes of JSON and one header that says who calls.
- {rounds} rounds of {seconds} s; everybody takes turns, in another order each round, and the
  ingress is measured again after every three.
- SQLite means `synchronous=FULL`, PostgreSQL means `fsync=on`, Restate its durable defaults. Each
  request that reaches the service is counted: a new key once, a replay never.
"""
BESIDE = """\
## {title}, beside Restate's ingress

The ratio is to the ingress of the same number of nodes; databases are beside one node. CPU is what
Restate and the process of OnceKey or of the SDK used for one request, without the service, the
load generator and PostgreSQL.

"""
STORES = """\
## OnceKey on its stores

Requests per second of OnceKey's edge, and the ratio to SQLite in the same round.

"""
TITLES = {"new": "New keys", "old": "Replays"}
LABELS = {
    "ingress-1": "Restate's ingress, 1 node",
    "in-run-1": "Restate's ingress, 1 node, `ctx.run`",
    "oncekey-restate-1": "**OnceKey on Restate, 1 node**",
    "services-1": "**OnceKey before the same service**, 1 node",
    "ingress-3": "Restate's ingress, 3 nodes",
    "in-run-3": "Restate's ingress, 3 nodes, `ctx.run`",
    "oncekey-restate-3": "**OnceKey on Restate, 3 nodes**",
    "services-3": "**OnceKey before the same service**, 3 nodes",
    "oncekey-sqlite": "**OnceKey on SQLite**",
    "oncekey-postgres": "**OnceKey on PostgreSQL**",
}
_COMPARED = ("oncekey-sqlite", "oncekey-postgres", "oncekey-restate-1", "oncekey-restate-3")


def restate(findings: Findings) -> str:
    return "\n".join(
        [
            _beside(findings, "new"),
            _beside(findings, "old"),
            _stores(findings) + unmeasured(findings),
        ]
    )


def _beside(findings: Findings, keys: str) -> str:
    rows = [
        (
            label,
            spread_of(entry),
            f"{entry.middle('rate'):,.0f}",
            latency_of(entry),
            f"{entry.middle('cpu_us'):.0f}",
            shares_of(entry),
        )
        for name, label in LABELS.items()
        if (entry := findings.entries.get(f"{keys}/{name}")) and entry.samples
    ]
    head = ("contender", "ratio", "requests/s", "p50 / p99 ms", "CPU µs", "notes")
    return BESIDE.format(title=TITLES[keys]) + table(head, rows)


def _stores(findings: Findings) -> str:
    rows = [(LABELS[name], *_compared(findings, name)) for name in _COMPARED]
    head = ("store", "new keys/s", "ratio", "replays/s", "ratio")
    return STORES + table(head, rows)


def _compared(findings: Findings, name: str) -> list[str]:
    cells = []
    for keys in TITLES:
        entry, base = (findings.entries.get(f"{keys}/{each}") for each in (name, _COMPARED[0]))
        if not entry or not base or not entry.samples or not base.samples:
            cells += ["–", "–"]
            continue
        mine, others = _by_round(entry), _by_round(base)
        ratios = [mine[number] / others[number] for number in mine if number in others]
        cells += [f"{entry.middle('rate'):,.0f}", str(spread(ratios)) if ratios else "–"]
    return cells


def _by_round(entry: Entry) -> dict[float, float]:
    numbers = {sample["round"] for sample in entry.samples}
    return {
        number: mean(sample["rate"] for sample in entry.samples if sample["round"] == number)
        for number in sorted(numbers)
    }
