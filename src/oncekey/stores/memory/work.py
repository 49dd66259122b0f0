"""The oracle of durable work: executions, journals, promises, events and control."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oncekey.stores.memory.store import MemoryStore


class MemoryWork:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def answers(self) -> dict[type, Callable[[Any], Any]]:
        return {}
