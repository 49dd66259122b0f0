"""Who waits, in this process, for an execution to end or a promise to be settled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oncekey.core.execution import Execution

if TYPE_CHECKING:
    from oncekey.core.ports import Store

# What another process does is heard by the bell; when that is missed, it is seen this much later.
LOOK_AGAIN = 1.0


class Watching:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._watchers: dict[int, set[asyncio.Future[Any]]] = {}
        self._heard: list[Callable[[], None]] = []
        self._stop: Callable[[], None] | None = None

    def open(self, heard: Callable[[], None]) -> None:
        """From now on `heard` is called whenever some process has rung."""
        self._heard.append(heard)
        listen = getattr(self._store, "listen", None)
        self._stop = listen(self._from_elsewhere) if listen else None

    def close(self) -> None:
        if self._stop is not None:
            self._stop()
        self._wake_all()

    def ring(self) -> None:
        """Tell other processes that something is ready, or has ended."""
        if ring := getattr(self._store, "ring", None):
            ring()

    def ended(self, execution: Execution) -> None:
        """Those who wait get it as it is now, without asking the store."""
        self._tell(execution.id, execution)

    def changed(self, number: int) -> None:
        """Those who wait have to look."""
        self._tell(number, None)

    def enter(self, number: int) -> asyncio.Future[Any]:
        future = self._loop.create_future()
        self._watchers.setdefault(number, set()).add(future)
        return future

    async def wait(self, number: int, future: asyncio.Future[Any], timeout: float) -> Any:
        """What was told, or None when the time is up."""
        # Far cheaper than `asyncio.wait`, and everybody who waits for a result comes here.
        timer = self._loop.call_later(timeout, _give_up, future)
        try:
            return await future
        finally:
            timer.cancel()
            self.leave(number, future)

    def leave(self, number: int, future: asyncio.Future[Any]) -> None:
        """Nobody waits for it any more."""
        watchers = self._watchers.get(number)
        if watchers is not None:
            watchers.discard(future)
            if not watchers:
                del self._watchers[number]

    def _tell(self, number: int, news: Any) -> None:
        for future in self._watchers.pop(number, ()):
            if not future.done():
                future.set_result(news)

    def _from_elsewhere(self) -> None:
        """Called in any thread."""
        try:
            self._loop.call_soon_threadsafe(self._hear)
        except RuntimeError:
            # The loop is closed: nobody waits any more.
            return

    def _hear(self) -> None:
        for heard in self._heard:
            heard()
        self._wake_all()

    def _wake_all(self) -> None:
        for number in list(self._watchers):
            self._tell(number, None)


def _give_up(future: asyncio.Future[Any]) -> None:
    if not future.done():
        future.set_result(None)
