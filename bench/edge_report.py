"""The section of the report about the edge: OnceKey and the gateways in front of one service."""

from bench.results import Findings
from bench.tables import latency_of, shares_of, spread_of, table, unmeasured

CONDITIONS = """\
- Whatever the load meets first has a core of its own: nginx, Caddy or OnceKey. Everything that is
  asked from there shares the other core with the load generator: the service, PostgreSQL, and
  OnceKey where it only decides for nginx. That is the same for everybody, and strict: on two
  cores the second is the first to be full.
- The service is another nginx that answers 201 with 24 bytes at once; asked directly, with the load
  generator on its core, it answers as the row `the service itself` says. No gateway can be faster.
- `a bare ASGI app` answers itself, on the server that OnceKey runs on: about what Python can do. On
  a machine that others use as well, Python loses more than nginx does.
- 64 keep-alive connections from wrk; every request is a POST with 23 bytes of JSON and one header
  that says who calls, also to those that ask nobody. All connections to the service are kept.
- {rounds} rounds of {seconds} s; everybody takes turns, in another order each round, and nginx is
  measured again after every three.
- SQLite means `synchronous=FULL`, PostgreSQL means `fsync=on`: claim and outcome of every new key
  are durable before its answer leaves. Each request that reaches the service is counted: a new key
  once, a replay never.
- `nginx + /edge/decide` is [the example](../../examples/nginx/nginx.conf) with one worker: no
  ledger is in it; the service behind sees the namespaced key and deduplicates itself.
"""
TEXT = """\
## In front of a service, beside nginx

CPU is what the contender's own processes used for one request, with the kernel's part of it and
without the service and PostgreSQL.

"""
LABELS = {
    "nginx": "nginx, one worker, `proxy_pass`",
    "service": "the service itself",
    "bare": "a bare ASGI app on uvicorn, asking nobody",
    "caddy": "Caddy, `reverse_proxy`",
    "nginx-decide": "**nginx + `/edge/decide`**",
    "nginx-decide-together": "**nginx + `/edge/decide`, both on one core**",
    "oncekey-pass": "**OnceKey, no key, caller known by an API key**",
    "oncekey-pass-jwt": "**OnceKey, no key, caller known by a JWT**",
    "oncekey-replays": "**OnceKey, replays**",
    "oncekey-new-sqlite": "**OnceKey, new keys, SQLite**",
    "oncekey-new-postgres": "**OnceKey, new keys, PostgreSQL**",
}


def edge(findings: Findings) -> str:
    rows = [
        (
            LABELS[name],
            spread_of(entry),
            f"{entry.middle('rate'):,.0f}",
            latency_of(entry),
            f"{entry.middle('cpu_us'):.0f}",
            shares_of(entry),
        )
        for name, entry in sorted(findings.entries.items(), key=lambda item: _place(item[0]))
        if entry.samples
    ]
    head = ("contender", "ratio to nginx", "requests/s", "p50 / p99 ms", "CPU µs", "notes")
    return TEXT + table(head, rows) + unmeasured(findings)


def _place(name: str) -> int:
    return list(LABELS).index(name)
