"""What workflows leave in the memory of their process for the bench to see; nothing is durable."""

import asyncio
import time
from typing import NamedTuple


class Resumption(NamedTuple):
    """`at` is by the clock of `time.perf_counter`."""

    at: float
    value: object


class Witness:
    """Counts what ran, and knows when a workflow came to a line. For one event loop."""

    def __init__(self) -> None:
        self.step_runs = 0
        self.entries = 0
        self._awaited: tuple[int, asyncio.Event] | None = None
        self._resumed: dict[str, asyncio.Future[Resumption]] = {}

    def enter(self) -> None:
        """Called by a workflow on the line before it waits."""
        self.entries += 1
        if self._awaited and self.entries >= self._awaited[0]:
            self._awaited[1].set()

    def resume(self, key: str, value: object) -> None:
        """Called by a workflow on the line after it waited."""
        now = time.perf_counter()
        if (future := self._resumed.pop(key, None)) and not future.done():
            future.set_result(Resumption(now, value))

    async def entered(self, number: int) -> None:
        """Until workflows have come to their wait `number` times since the process began."""
        if self.entries < number:
            self._awaited = number, asyncio.Event()
            await self._awaited[1].wait()

    def resumption(self, key: str) -> asyncio.Future[Resumption]:
        """Asked for before the workflow of that key can go on."""
        return self._resumed.setdefault(key, asyncio.get_running_loop().create_future())


WITNESS = Witness()


def add(number: int) -> int:
    """The step of every workflow: as cheap as can be, and counted."""
    WITNESS.step_runs += 1
    return number + 1
