"""The oracle of durable work: what each of its requests does and answers, in plain dictionaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oncekey.stores.memory.awaiting import MemoryAwaiting
from oncekey.stores.memory.census import MemoryCensus
from oncekey.stores.memory.claims import Claims
from oncekey.stores.memory.control import MemoryControl
from oncekey.stores.memory.events import MemoryEvents
from oncekey.stores.memory.executions import MemoryExecutions
from oncekey.stores.memory.kept import Kept
from oncekey.stores.memory.promises import MemoryPromises
from oncekey.stores.memory.reads import MemoryReads
from oncekey.stores.memory.tidying import MemoryTidying


class MemoryWork:
    """Its keys are claims of the store itself, so that the ledger sees them."""

    def __init__(self, claims: Claims, owner: int) -> None:
        kept = Kept(claims, owner)
        executions, promises = MemoryExecutions(kept), MemoryPromises(kept)
        self._rooms = (
            executions,
            promises,
            MemoryAwaiting(kept, executions, promises),
            MemoryEvents(kept),
            MemoryControl(kept),
            MemoryTidying(kept),
            MemoryReads(kept),
            MemoryCensus(claims, kept),
        )

    def answers(self) -> dict[type, Callable[[Any], Any]]:
        return {kind: answer for room in self._rooms for kind, answer in room.answers().items()}
