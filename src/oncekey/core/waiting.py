"""Waiting for an answer: threads block on it, loops await it. Groups are delivered at once."""

from __future__ import annotations

import _thread
import asyncio
from asyncio import get_running_loop
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from oncekey.core.model import make
from oncekey.core.ports import Waiter


class ThreadWaiter:
    """Wakes one blocked thread. A bare lock is the cheapest thing that can do it."""

    __slots__ = ("_answer", "_lock", "_orphan")
    loop = None

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._lock.acquire()
        self._answer: Any = None
        self._orphan: Callable[[Any], None] | None = None

    def resolve(self, answer: Any) -> None:
        self._answer = answer
        if self._lock.locked():
            self._lock.release()
        if self._orphan is not None:
            self._orphan(answer)

    def desert(self, orphan: Callable[[Any], None]) -> None:
        """The thread was interrupted: `orphan` is told the answer, maybe twice."""
        self._orphan = orphan
        if self._answer is not None:
            orphan(self._answer)

    def wait(self, timeout: float | None = None) -> Any:
        """The answer, or None when `timeout` seconds pass first."""
        self._lock.acquire(timeout=-1 if timeout is None else timeout)
        return self._answer


class LoopWaiter(NamedTuple):
    """Wakes one task. `heir` is told of the answer to a request nobody waits for any more."""

    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    heir: Callable[[Any, Any], None] | None
    request: Any

    def resolve(self, answer: Any) -> None:
        """Only on the waiter's own loop; from elsewhere go through `deliver`."""
        if not self.future.done():
            self.future.set_result(answer)
        else:
            self.orphan(answer)

    def desert(self) -> None:
        """The task was cancelled: an answer that has come, or is still to come, is nobody's."""
        if not self.future.done():
            # Its loop may be closed; it is cancelled all the same.
            with suppress(RuntimeError):
                self.future.cancel()
        elif not self.future.cancelled():
            self.orphan(self.future.result())

    def orphan(self, answer: Any) -> None:
        if self.heir is not None:
            self.heir(self.request, answer)


def waiter_for(request: Any, heir: Callable[[Any, Any], None] | None = None) -> LoopWaiter:
    """A waiter on the running loop."""
    loop = get_running_loop()
    return make(LoopWaiter, (loop, loop.create_future(), heir, request))


def deliver(answers: Iterable[tuple[Waiter, Any]]) -> None:
    """Hand a group of answers over, waking each event loop once."""
    loops: dict[Any, _Batch] = {}
    last, batch = None, _Batch()
    for pair in answers:
        loop = pair[0].loop
        if loop is None:
            pair[0].resolve(pair[1])
            continue
        if loop is not last:
            last, batch = loop, loops.setdefault(loop, _Batch())
        batch.append(pair)
    for loop, batch in loops.items():
        try:
            loop.call_soon_threadsafe(_resolve_all, batch)
        except RuntimeError:
            # The loop was closed under its waiters; nobody is left to run what they claimed.
            _resolve_orphans(batch.emptied())


class _Batch(list[tuple[Waiter, Any]]):
    """Answers on their way to one loop; not lost when it is closed before it runs."""

    def emptied(self) -> list[tuple[Waiter, Any]]:
        pairs = self[:]
        self.clear()
        return pairs

    def __del__(self) -> None:
        if self:
            # Here any lock may be held by the code that was interrupted for this; a thread waits.
            with suppress(RuntimeError):
                _thread.start_new_thread(_resolve_orphans, (self[:],))


def _resolve_all(batch: _Batch) -> None:
    for waiter, answer in batch.emptied():
        waiter.resolve(answer)


def _resolve_orphans(pairs: list[tuple[Waiter, Any]]) -> None:
    for waiter, answer in pairs:
        orphan = getattr(waiter, "orphan", None)
        if orphan is not None:
            orphan(answer)
