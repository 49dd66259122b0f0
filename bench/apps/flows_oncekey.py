"""Workflows on OnceKey, as its manual tells to write them."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from bench.apps.witness import WITNESS, add
from oncekey import App, Context
from oncekey.core.execution import Status
from oncekey.core.work import ListExecutions

LOOK_SECONDS = 0.05

app = App()


async def _add(number: int) -> int:
    return add(number)


@app.workflow
async def one(ctx: Context, number: int) -> int:
    return await ctx.run("a", _add, number)


@app.workflow
async def three(ctx: Context, number: int) -> int:
    first = await ctx.run("a", _add, number)
    second = await ctx.run("b", _add, first)
    return await ctx.run("c", _add, second)


@app.workflow
async def wait(ctx: Context, key: str) -> int:
    WITNESS.enter()
    value = await ctx.promise("paid", key=key, type=int)
    WITNESS.resume(key, value)
    return value


class OncekeyFlows:
    def __init__(self, url: str) -> None:
        self._url = url
        self._opened = AsyncExitStack()

    async def open(self) -> None:
        await self._opened.enter_async_context(app.open(self._url))

    async def close(self) -> None:
        await self._opened.aclose()

    async def run(self, steps: int, number: int) -> Any:
        handle = await app.start(one if steps == 1 else three, number)
        return await handle.result()

    async def wait(self, key: str) -> None:
        await app.start(wait, key)

    async def all_wait(self, number: int) -> None:
        await WITNESS.entered(number)
        while await self._busy():  # noqa: ASYNC110 - an engine does not tell when it has come to rest
            await asyncio.sleep(LOOK_SECONDS)

    async def all_wait_again(self, number: int) -> None:
        """Who waits is not recovered: it is woken where it stands."""

    async def resolve(self, key: str, value: int) -> None:
        await app.resolve(f"key:{key}", value)

    async def _busy(self) -> bool:
        found = [
            await app.engine.executions(ListExecutions(None, status, limit=1))
            for status in (Status.READY, Status.RUNNING)
        ]
        return any(found)
