"""How much there is of what: counted in the background, and never for long."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from oncekey.core.errors import OnceKeyError
from oncekey.core.execution import PromiseState, Status
from oncekey.core.ledger import Ledger

# A count may take one part in so many of the time until the next.
_SHARE = 100
_PAUSE = 5_000
# Whoever asks waits for a count that is as quick as this.
_QUICK = 50


class Census(NamedTuple):
    """Count everything. Answer: Counted."""


class Counted(NamedTuple):
    """Every status and every state is among them, with 0 when there are none."""

    claims_in_progress: int
    """Those that durable work holds are not: it is counted by itself."""
    oldest_claim_at: int | None
    executions: dict[Status, int]
    """Workflows."""
    tasks: dict[Status, int]
    promises: dict[PromiseState, int]
    """Of the kind PROMISE."""
    oldest_waiting_at: int | None
    """When the oldest execution that is WAITING was started."""
    oldest_pending_at: int | None
    """When the oldest promise that is PENDING was made."""
    at: int = 0
    """When it was counted; the store does not say."""


class Censuses:
    """For one event loop. Counts are at least 5 s apart, and 100 times as long as the last one
    took: counting never costs more than 1 % of a core."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._last: Counted | None = None
        self._due_at = -1
        self._took = 0
        self._counting: asyncio.Task[None] | None = None

    async def latest(self) -> Counted | None:
        """The last count, or a new one when it is time for it. One that takes long goes on in the
        background. None when the store has never answered."""
        if self._counting is None and self._ledger.clock.steady() >= self._due_at:
            self._counting = asyncio.get_running_loop().create_task(self._count())
        if self._counting is not None and (self._last is None or self._took <= _QUICK):
            await asyncio.shield(self._counting)
        return self._last

    async def _count(self) -> None:
        clock = self._ledger.clock
        began = clock.steady()
        try:
            counted: Counted = await self._ledger.aread(Census())
            self._last = counted._replace(at=clock.now())
        except OnceKeyError:
            # The store is away; what was counted before it went still says something.
            pass
        finally:
            ended = clock.steady()
            self._took = ended - began
            self._due_at = ended + max(_PAUSE, _SHARE * self._took)
            self._counting = None
