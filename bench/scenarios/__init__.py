"""What is measured: each scenario has a name, one line of help, and `run`."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.results import Findings, Plan
from bench.scenarios import (
    duplicates,
    new_keys,
    replays,
    resume,
    stored_keys,
    sweep,
    waiting,
    workflows,
)
from bench.stage import Stage

LEDGER, DURABLE = "ledger", "durable"


@dataclass(frozen=True)
class Scenario:
    """`group`: what is published together, from one run."""

    group: str
    name: str
    summary: str
    needs_servers: bool
    run: Callable[[Stage, Plan], Findings]


SCENARIOS = (
    Scenario(
        LEDGER,
        "new-keys",
        "unique keys: every request claims, runs and stores",
        True,
        new_keys.run,
    ),
    Scenario(
        LEDGER,
        "replays",
        "a fixed set of finished keys, asked for again and again",
        True,
        replays.run,
    ),
    Scenario(
        LEDGER,
        "duplicates",
        "64 requests of one key at once, 20 ms handler",
        True,
        duplicates.run,
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
)
