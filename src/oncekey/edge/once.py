"""What was made of a value before, for values that come again as the same object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

In = TypeVar("In")
Out = TypeVar("Out")


class Once(Generic[In, Out]):
    """`make(value)`, once for each value while it is remembered. Values must not change."""

    __slots__ = ("_known", "_make", "_most")

    def __init__(self, make: Callable[[In], Out], most: int = 256) -> None:
        self._make = make
        self._most = most
        self._known: dict[int, tuple[In, Out]] = {}

    def __call__(self, value: In) -> Out:
        found = self._known.get(id(value))
        if found is not None:
            # The value is held here, so that no other has its id.
            return found[1]
        if len(self._known) >= self._most:
            self._known.clear()
        made = self._make(value)
        self._known[id(value)] = (value, made)
        return made
