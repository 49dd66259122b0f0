"""What OnceKey promises about its speed, held against what was measured."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.apps.handler import SLOW_SECONDS
from bench.contenders import CONTENDERS
from bench.flowing import OURS, STORES
from bench.load import CONNECTIONS
from bench.results import Results

ATTACH_ALLOWANCE_MS = 12.0
MANY_WAITING = 100_000


@dataclass(frozen=True)
class Goal:
    """`measured` is None when this run did not measure it."""

    text: str
    target: str
    measured: str | None = None
    met: bool = False

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "not measured"
        return "met" if self.met else "**not met**"


def goals_of(results: Results) -> Iterator[Goal]:
    """Of the group of scenarios that was run."""
    if {"workflows", "resume", "waiting"} & set(results.findings):
        for store in STORES:
            yield from _workflows(results, store)
    if "edge" in results.findings:
        yield from _edge(results)
    if "restate" in results.findings:
        yield from _restate(results)
    if {"new-keys", "replays", "duplicates", "stored-keys", "sweep"} & set(results.findings):
        yield from _ledger(results)


def _ledger(results: Results) -> Iterator[Goal]:
    yield _ratio(
        results, "new-keys", "asgi:oncekey-sqlite", 0.35, "New keys, SQLite FULL, raw ASGI"
    )
    yield _ratio(
        results, "new-keys", "fastapi:oncekey-sqlite", 0.60, "New keys, SQLite FULL, FastAPI"
    )
    for framework in ("starlette", "fastapi", "django"):
        yield _best_peer(results, framework, "redis")
        yield _best_peer(results, framework, "memory")
    yield _ratio(results, "replays", "asgi:oncekey-sqlite", 0.85, "Replays, raw ASGI")
    yield _ratio(results, "replays", "starlette:oncekey-sqlite", 0.85, "Replays, Starlette")
    yield _ratio(results, "replays", "fastapi:oncekey-sqlite", 0.85, "Replays, FastAPI")
    yield from (_attach(results, framework) for framework in ("asgi", "starlette"))
    yield _ratio(
        results, "stored-keys", "10000000", 0.80, "Claims per second, 10 M stored keys over 10 k"
    )
    yield _at_most(results, "sweep", "p50", 3.0, "p50 of claims during a sweep over without")
    yield _at_most(results, "sweep", "p99", 3.0, "p99 of claims during a sweep over without")


def _workflows(results: Results, store: str) -> Iterator[Goal]:
    for steps in (1, 3):
        text = f"Workflows per second over DBOS's, {steps}-step, 256 at once, {store}"
        yield _ratio(results, "workflows", f"{OURS}/{store}/{steps}/256", 20, text)
    yield _middle(results, "resume", store, "p50_ms", 10, "ms", "From resolving to resuming, p50")
    if results.plan.waiting >= MANY_WAITING:
        text = f"{results.plan.waiting:,} waiting workflows"
        yield _middle(results, "waiting", store, "waiting_mb", 500, "MB", text)
        yield _middle(results, "waiting", store, "start_seconds", 60, "s", f"Start with {text}")


def _edge(results: Results) -> Iterator[Goal]:
    for name, least, text in (
        ("oncekey-pass", 0.38, "No key, caller known by an API key"),
        ("oncekey-replays", 0.50, "Replays"),
        ("oncekey-new-sqlite", 0.20, "New keys, SQLite FULL"),
        ("nginx-decide", 0.50, "nginx + `/edge/decide`"),
    ):
        yield _ratio(results, "edge", name, least, f"{text}, over nginx with one worker")


def _restate(results: Results) -> Iterator[Goal]:
    ways = {"services": "before the same service", "oncekey-restate": "on Restate"}
    for way, where in ways.items():
        for size, nodes in ((1, "1 node"), (3, "3 nodes")):
            for keys, text in (("new", "New keys"), ("old", "Replays")):
                told = f"{text} {where}, {nodes}, over Restate's ingress directly"
                yield _ratio(results, "restate", f"{keys}/{way}-{size}", 0.70, told)


def _middle(
    results: Results, scenario: str, store: str, figure: str, most: float, unit: str, text: str
) -> Goal:
    goal = Goal(f"{text}, {store}", f"≤ {most:g} {unit}")
    findings = results.findings.get(scenario)
    entry = findings.entries.get(f"{OURS}/{store}") if findings else None
    if not entry or not entry.samples:
        return goal
    found = entry.middle(figure)
    return Goal(goal.text, goal.target, f"{found:.1f} {unit}", found <= most)


def _median(results: Results, scenario: str, name: str) -> float | None:
    return results.findings[scenario].median(name) if scenario in results.findings else None


def _ratio(results: Results, scenario: str, name: str, least: float, text: str) -> Goal:
    found = _median(results, scenario, name)
    goal = Goal(text, f"≥ {least:.2f} ×")
    return goal if found is None else Goal(text, goal.target, f"{found:.2f} ×", found >= least)


def _at_most(results: Results, scenario: str, name: str, most: float, text: str) -> Goal:
    found = _median(results, scenario, name)
    goal = Goal(text, f"≤ {most:.1f} ×")
    return goal if found is None else Goal(text, goal.target, f"{found:.2f} ×", found <= most)


def _best_peer(results: Results, framework: str, store: str) -> Goal:
    """Durable SQLite against the fastest peer that may forget its keys: memory, volatile Redis."""
    goal = Goal(f"New keys, SQLite FULL over the best {store} peer, {framework}", "≥ 1.00 ×")
    peers = {
        each: found
        for each in CONTENDERS
        if each.framework == framework and each.store == store
        if each.product not in {"bare", "oncekey"}
        if (found := _median(results, "new-keys", each.name))
    }
    ours = _median(results, "new-keys", f"{framework}:oncekey-sqlite")
    if not peers or not ours:
        return goal
    best = max(peers, key=lambda each: peers[each])
    ratio = ours / peers[best]
    measured = f"{ratio:.2f} × ({ours:.2f} against {peers[best]:.2f} of {best.label})"
    return Goal(goal.text, goal.target, measured, ratio >= 1)


def _attach(results: Results, framework: str) -> Goal:
    most = SLOW_SECONDS * 1e3 + ATTACH_ALLOWANCE_MS
    goal = Goal(
        f"64 duplicates, `attach`, {framework}: the last answer",
        f"≤ {most:.0f} ms, 64 requests, no 409",
    )
    findings = results.findings.get("duplicates")
    entry = findings.entries.get(f"{framework}:oncekey-sqlite-attach") if findings else None
    if not entry or not entry.samples:
        return goal
    last, requests, conflicts = (
        entry.middle(name) for name in ("last_answer_ms", "requests", "conflicts")
    )
    measured = f"{last:.1f} ms, {requests:g} requests, {conflicts:g} × 409"
    met = last <= most and requests == CONNECTIONS and not conflicts
    return Goal(goal.text, goal.target, measured, met)
