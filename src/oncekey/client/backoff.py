"""When to try again: exponential, with jitter, within bounds; unless the server names a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

from oncekey.core.errors import ConfigurationError

_SPREAD = 0.25


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds. A request that is still running elsewhere uses up time, and no attempts."""

    attempts: int = 8
    deadline: float = 60.0
    """For all attempts together."""
    first: float = 0.2
    longest: float = 10.0
    longest_wait: float = 60.0
    """A `Retry-After` beyond it is not obeyed to the end."""

    def __post_init__(self) -> None:
        if self.attempts < 1 or min(self.deadline, self.first, self.longest) < 0:
            raise ConfigurationError("Backoff has 1 attempt or more, and no time below 0")

    def pause(self, failures: int, after: float | None, random: Callable[[], float]) -> float:
        """Before the next attempt, after so many have failed. `after` is what the server said."""
        # Callers that failed together do not come back together.
        if after is not None:
            return min(after * (1 + _SPREAD * random()), self.longest_wait)
        highest = min(self.longest, self.first * 2.0 ** min(failures - 1, 32))
        return highest * random()


def seconds_in(value: str, now: float) -> float | None:
    """Of a `Retry-After` header: seconds, or a date."""
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        date = parsedate_to_datetime(text)
        date = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - now)
    except (ValueError, OverflowError):
        return None
