"""How large the journals are that runs of this process have written, as far as it knows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from oncekey.core.answers import Picked
from oncekey.core.execution import Entry

# From then on it is cheaper to ask for what is needed than to be sent everything.
_LARGE = 1 << 20
_BESIDE = 200
_KNOWN = 10_000


class Sizes:
    def __init__(self) -> None:
        self._sizes: OrderedDict[int, int] = OrderedDict()

    def loaded(self, picked: Picked) -> None:
        self._put(picked.execution.id, _size_of(picked.entries))

    def is_large(self, number: int, entries: Iterable[Entry]) -> bool:
        """Whether the journal is, with these entries, which are on their way to it."""
        size = self._sizes.get(number, 0)
        self._put(number, size + _size_of(entries))
        return size > _LARGE

    def forget(self, number: int) -> None:
        self._sizes.pop(number, None)

    def _put(self, number: int, size: int) -> None:
        self._sizes[number] = size
        self._sizes.move_to_end(number)
        if len(self._sizes) > _KNOWN:
            self._sizes.popitem(last=False)


def _size_of(entries: Iterable[Entry]) -> int:
    return sum(len(entry.body) + _BESIDE for entry in entries)
