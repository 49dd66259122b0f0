"""Drives a claimer process: the ledger under load without HTTP."""

from pathlib import Path

from bench.working import Worker


class Claimer(Worker):
    """One process with one ledger open; see bench/apps/claimer.py for the orders it takes."""

    def __init__(
        self, url: str, log: Path, *, lease: float = 15.0, cache_bytes: int = 64 << 20
    ) -> None:
        super().__init__("claimer", [url, str(lease), str(cache_bytes)], log)

    def claim(self, seconds: float) -> dict[str, float]:
        return self.order("claim", seconds)

    def replay(self, first: int, last: int, seconds: float) -> dict[str, float]:
        return self.order("replay", first, last, seconds)

    def claim_while_sweeping(self, seconds: float = 280.0) -> dict[str, float]:
        return self.order("sweep", seconds)

    def arrive(self) -> dict[str, float]:
        return self.order("arrive")

    def hold(self, prefix: str, number: int) -> dict[str, float]:
        return self.order("hold", prefix, number)

    def take_over(self, prefix: str, number: int) -> dict[str, float]:
        return self.order("take", prefix, number)

    def memory(self) -> float:
        return self.order("memory")["resident_mb"]


def claimer_on(database: Path) -> Claimer:
    """On a SQLite file, with its log beside it."""
    return Claimer(f"sqlite:///{database}", database.with_suffix(".log"))
