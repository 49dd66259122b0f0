"""What Restate has asked this process for: to run an execution that became ready."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from oncekey.core.execution import Sort

if TYPE_CHECKING:
    from oncekey.durable.embedded.run import Run

Place = tuple[Sort, str]


class Activation:
    """`dispatch` counts how often the execution became ready. `over` is resolved when it rests:
    with None when nobody has to look after it, else with the seconds until somebody has to."""

    __slots__ = ("dispatch", "number", "over", "place", "run")

    def __init__(self, place: Place, number: int, dispatch: int) -> None:
        self.place = place
        self.number = number
        self.dispatch = dispatch
        self.run: Run | None = None
        self.over: asyncio.Future[float | None] = asyncio.get_running_loop().create_future()

    def rests(self, wait: float | None) -> None:
        if not self.over.done():
            self.over.set_result(wait)


class Queue:
    """Activations that wait for room, those that came first first."""

    def __init__(self) -> None:
        self._count = 0
        self._waiting: dict[Place, deque[tuple[int, Activation]]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, activation: Activation) -> None:
        self._count += 1
        self._waiting.setdefault(activation.place, deque()).append((self._count, activation))

    def take(self, has_room: Callable[[Place], bool]) -> Activation | None:
        """The first of those that there is room for."""
        free = [place for place in self._waiting if has_room(place)]
        if not free:
            return None
        first = min(free, key=lambda place: self._waiting[place][0][0])
        waiting = self._waiting[first]
        _, activation = waiting.popleft()
        if not waiting:
            del self._waiting[first]
        return activation
