"""What a run found: plain values that become results.json, RESULTS.md and the picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.rounds import Spread, spread_of


@dataclass(frozen=True)
class Plan:
    """How much is measured: the whole run takes about half an hour, the quick one is short."""

    quick: bool = False
    rounds: int = 5
    seconds: int = 2
    bursts: int = 12
    stored_keys: tuple[int, ...] = (10_000, 1_000_000, 10_000_000)
    ledger_seconds: float = 3.0
    expired_keys: int = 1_000_000
    sweeps: int = 3
    concurrencies: tuple[int, ...] = (1, 32, 256)
    resumes: int = 60
    waiting: int = 100_000
    waiting_of_peer: int = 1_000


QUICK = Plan(
    quick=True,
    rounds=2,
    seconds=1,
    bursts=8,
    stored_keys=(10_000, 1_000_000),
    ledger_seconds=1.5,
    expired_keys=100_000,
    sweeps=1,
    concurrencies=(1, 256),
    resumes=20,
    waiting=10_000,
    waiting_of_peer=200,
)


@dataclass
class Entry:
    """One contender in one scenario: its ratio in each round and the raw samples behind them."""

    ratios: list[float] = field(default_factory=list)
    samples: list[dict[str, float]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def spread(self) -> Spread | None:
        return spread_of(self.ratios) if self.ratios else None

    def middle(self, figure: str) -> float:
        return median(sample[figure] for sample in self.samples)

    def total(self, figure: str) -> float:
        return sum(sample.get(figure, 0) for sample in self.samples)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


@dataclass
class Findings:
    """All entries of one scenario, by contender (or by size of the store)."""

    scenario: str
    entries: dict[str, Entry] = field(default_factory=dict)

    def entry(self, name: str) -> Entry:
        return self.entries.setdefault(name, Entry())

    def median(self, name: str) -> float | None:
        spread = self.entries[name].spread if name in self.entries else None
        return spread.median if spread else None


def results_of(found: dict[str, Any]) -> Results:
    """The inverse of `asdict`: a run as it was written to results.json."""
    plan = Plan(
        **{
            name: tuple(value) if isinstance(value, list) else value
            for name, value in found["plan"].items()
        }
    )
    findings = {
        name: Findings(name, {each: Entry(**entry) for each, entry in given["entries"].items()})
        for name, given in found["findings"].items()
    }
    return Results(**{**found, "plan": plan, "findings": findings})


@dataclass
class Results:
    """Everything one run found, and on what."""

    plan: Plan
    started: str
    machine: dict[str, str]
    versions: dict[str, str]
    absent: dict[str, str] = field(default_factory=dict)
    findings: dict[str, Findings] = field(default_factory=dict)
