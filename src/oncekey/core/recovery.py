"""What an application's `recover` hook may answer about an operation whose holder died."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from oncekey.core.model import Operation, Outcome


class DidNotHappen(NamedTuple):
    """The effect is not there: run the operation again."""


class CannotTell(NamedTuple):
    """Nobody knows: this request is refused, and the next one asks again."""


Recovered = Outcome | DidNotHappen | CannotTell
Recover = Callable[[Operation], Recovered | Awaitable[Recovered]]
