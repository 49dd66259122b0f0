"""What is measured: each scenario has a name, one line of help, and `run`."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.results import Findings, Plan
from bench.scenarios import duplicates, new_keys, replays, stored_keys, sweep
from bench.stage import Stage


@dataclass(frozen=True)
class Scenario:
    name: str
    summary: str
    needs_servers: bool
    run: Callable[[Stage, Plan], Findings]


SCENARIOS = (
    Scenario("new-keys", "unique keys: every request claims, runs and stores", True, new_keys.run),
    Scenario(
        "replays", "a fixed set of finished keys, asked for again and again", True, replays.run
    ),
    Scenario("duplicates", "64 requests of one key at once, 20 ms handler", True, duplicates.run),
    Scenario(
        "stored-keys",
        "claims per second with 10 k, 1 M and 10 M keys in SQLite",
        False,
        stored_keys.run,
    ),
    Scenario("sweep", "latency of claims while a million expired keys are swept", False, sweep.run),
)
