"""Drives a claimer process: the ledger under load without HTTP."""

from pathlib import Path

from bench.working import Worker


class Claimer(Worker):
    """One process with one ledger open; see bench/apps/claimer.py for the orders it takes."""

    def __init__(self, database: Path) -> None:
        super().__init__("claimer", [f"sqlite:///{database}"], database.with_suffix(".log"))

    def claim(self, seconds: float) -> dict[str, float]:
        return self.order("claim", seconds)

    def claim_while_sweeping(self) -> dict[str, float]:
        return self.order("sweep")
