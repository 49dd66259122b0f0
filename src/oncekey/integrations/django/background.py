"""Work that goes on when its caller is gone. Django cancels a view as soon as its client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

# The event loop itself holds its tasks by weak references only.
_running: set[asyncio.Task[Any]] = set()


def start(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Run it to its end, whoever waits for it."""
    task = asyncio.get_running_loop().create_task(work)
    _running.add(task)
    task.add_done_callback(_ended)
    return task


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Wait for it; being cancelled ends the waiting, not the work."""
    return await asyncio.shield(start(work))


def _ended(task: asyncio.Task[Any]) -> None:
    _running.discard(task)
    if not task.cancelled():
        # Seen: whoever still waits is told, and nobody else can be.
        task.exception()
