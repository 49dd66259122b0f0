"""What is measured: each scenario has a name, one line of help, and `run`."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.results import Findings, Plan
from bench.scenarios import (
    duplicates,
    edge,
    new_keys,
    replays,
    restate,
    resume,
    stored_keys,
    sweep,
    waiting,
    workflows,
)
from bench.stage import Stage

LEDGER, DURABLE, EDGE, RESTATE = "ledger", "durable", "edge", "restate"


@dataclass(frozen=True)
class Scenario:
    """`group`: what is published together, from one run."""

    group: str
    name: str
    summary: str
    needs_servers: bool
    run: Callable[[Stage, Plan], Findings]
    needs: tuple[str, ...] = ()
    """Programs, without which it is left out."""


SCENARIOS = (
    Scenario(
        LEDGER,
        "new-keys",
        "unique keys: every request claims, runs and stores",
        True,
        new_keys.run,
        needs=("wrk",),
    ),
    Scenario(
        LEDGER,
        "replays",
        "a fixed set of finished keys, asked for again and again",
        True,
        replays.run,
        needs=("wrk",),
    ),
    Scenario(
        LEDGER,
        "duplicates",
        "64 requests of one key at once, 20 ms handler",
        True,
        duplicates.run,
        needs=("wrk",),
    ),
    Scenario(
        LEDGER,
        "stored-keys",
        "claims per second with 10 k, 1 M and 10 M keys in SQLite",
        False,
        stored_keys.run,
    ),
    Scenario(
        LEDGER,
        "sweep",
        "latency of claims while a million expired keys are swept",
        False,
        sweep.run,
    ),
    Scenario(
        DURABLE,
        "workflows",
        "workflows per second, 1 and 3 steps, beside DBOS",
        False,
        workflows.run,
    ),
    Scenario(
        DURABLE,
        "resume",
        "from resolving a promise to the workflow's next line",
        False,
        resume.run,
    ),
    Scenario(
        DURABLE,
        "waiting",
        "memory and start of a process with 100 k waiting workflows",
        False,
        waiting.run,
    ),
    Scenario(
        EDGE,
        "edge",
        "requests through OnceKey, nginx and Caddy to one service",
        False,
        edge.run,
        needs=("wrk", "nginx"),
    ),
    Scenario(
        RESTATE,
        "restate",
        "the edge on SQLite, PostgreSQL and Restate, beside Restate's ingress",
        False,
        restate.run,
        needs=("wrk", "nginx", "restate-server"),
    ),
)
