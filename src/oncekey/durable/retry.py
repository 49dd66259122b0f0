"""How often a step is tried, how long it rests in between, and what a duration may be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b
from typing import Literal, Self, TypeGuard, get_args

from oncekey.core.errors import ConfigurationError, InvalidInput
from oncekey.core.retention import MAX_SECONDS

OnMaxAttempts = Literal["pause", "kill", "raise"]


def seconds_of(duration: timedelta | float) -> float:
    """Seconds in a `timedelta`, or a number of them. Raises `InvalidInput` outside 0–10 years."""
    if isinstance(duration, timedelta):
        seconds = duration.total_seconds()
    elif _is_number(duration):
        seconds = duration
    else:
        raise InvalidInput(f"{duration!r} is not a duration; give a timedelta, or seconds")
    # A comparison with NaN is never true.
    if not 0 <= seconds <= MAX_SECONDS:
        raise InvalidInput(f"a duration of {duration} is not between 0 and ten years")
    return float(seconds)


@dataclass(frozen=True, slots=True)
class Retry:
    """At most `attempts` of them. The rest after the first failure is `initial`, and grows by
    `factor` up to `longest`; up to the part `jitter` is taken off, differently for every work.

    When there are no attempts left: `pause` waits for a `resume`, `kill` fails the whole execution,
    and `raise` raises `StepFailed` in the workflow, which may go another way.
    """

    attempts: int = 70
    initial: timedelta | float = 0.5
    factor: float = 2.0
    longest: timedelta | float = 60.0
    jitter: float = 0.2
    on_max_attempts: OnMaxAttempts = "pause"

    def __post_init__(self) -> None:
        for name in ("initial", "longest"):
            try:
                object.__setattr__(self, name, seconds_of(getattr(self, name)))
            except InvalidInput as error:
                raise ConfigurationError(f"Retry: {name}: {error}") from error
        if type(self.attempts) is not int or self.attempts < 1:
            raise ConfigurationError(f"Retry: attempts must be 1 or more, not {self.attempts!r}")
        if not (_is_number(self.factor) and 1 <= self.factor < math.inf):
            raise ConfigurationError(f"Retry: factor must be 1 or more, not {self.factor!r}")
        if not (_is_number(self.jitter) and 0 <= self.jitter <= 1):
            raise ConfigurationError(f"Retry: jitter must be between 0 and 1, not {self.jitter!r}")
        if self.on_max_attempts not in get_args(OnMaxAttempts):
            raise ConfigurationError(
                f"Retry: on_max_attempts must be pause, kill or raise, not {self.on_max_attempts!r}"
            )

    @classmethod
    def never(cls) -> Self:
        """One attempt; its failure is raised in the workflow."""
        return cls(attempts=1, on_max_attempts="raise")

    def delay(self, attempt: int, seed: bytes | int) -> float:
        """Seconds to rest after the failure of `attempt`, which counts from 1."""
        initial, longest = seconds_of(self.initial), seconds_of(self.longest)
        try:
            rest = min(longest, initial * self.factor ** (attempt - 1))
        except OverflowError:
            rest = longest if initial else 0.0
        return rest * (1 - self.jitter * _draw(attempt, seed))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _draw(attempt: int, seed: bytes | int) -> float:
    """From 0 to 1, spread evenly over attempts and seeds."""
    text = b"%d:%b" % (attempt, seed if isinstance(seed, bytes) else str(seed).encode())
    return int.from_bytes(blake2b(text, digest_size=8).digest()) / (1 << 64)
