"""How a server speaks of keys: which headers it reads and writes, and what its conflicts mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Dialect:
    key: str = "Idempotency-Key"
    """The header that carries the key."""
    replayed: str = "Idempotent-Replayed"
    """The header that marks a stored answer."""
    operation: str = "X-Operation-Id"
    """The header that names the operation."""
    conflicts: Literal["answer", "retry"] = "answer"
    """What a 409 is that does not say so itself: the application's answer, or still running."""
    recovers: bool = True
    """Whether there are routes to ask what became of a key."""
    should_retry: str = ""
    """A header whose `true` or `false` counts more than the status."""


ONCEKEY = Dialect()
STRIPE = Dialect(
    operation="Request-Id",
    conflicts="retry",
    recovers=False,
    should_retry="Stripe-Should-Retry",
)
