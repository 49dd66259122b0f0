"""Durable work from a process that has none of its code: it starts, settles and looks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from oncekey.core.ledger import Ledger
from oncekey.durable.engine import Engine

T = TypeVar("T")


def engaged(ledger: Ledger, work: Callable[[Engine], Coroutine[Any, Any, T]]) -> T:
    """What `work` answers, given an engine that is open meanwhile. Whatever it makes ready is run
    by the processes that serve its code."""
    from oncekey.durable.choice import engine_for

    return asyncio.run(_engaged(engine_for(ledger), work))


async def _engaged(engine: Engine, work: Callable[[Engine], Coroutine[Any, Any, T]]) -> T:
    await engine.open()
    try:
        return await work(engine)
    finally:
        await engine.close()
