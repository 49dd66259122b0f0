"""How much of everything: the sizes that are published, and any smaller ones to try it out."""

from dataclasses import dataclass

# Of the largest size: where the store is looked at on its way there.
STEPS = (0.0, 0.1, 0.25, 0.5, 1.0)
# Smaller than that, there is no way to look at.
SMALLEST = 100_000


@dataclass(frozen=True)
class Sizes:
    keys: int = 10_000_000
    promises: int = 1_000_000
    workflows: int = 100_000
    soak_minutes: float = 30.0
    seconds: float = 10.0
    """Of each sample."""
    soak_rate: float = 150.0
    """Requests a second, whatever they take."""

    @property
    def expired(self) -> int:
        """Further keys, past their time, for the sweep."""
        return self.keys // 10

    @property
    def steps(self) -> list[int]:
        shares = STEPS if self.keys >= SMALLEST else (0.0, 1.0)
        return [int(self.keys * share) for share in shares]

    @property
    def touched(self) -> int:
        """Of the promises: made or resolved through the engine, not in bulk."""
        return max(200, self.promises // 50)

    @property
    def resumes(self) -> int:
        return min(60, self.workflows // 10)

    @property
    def woken(self) -> int:
        """Of the workflows: at once."""
        return self.workflows // 10
