"""The life of an ASGI app, whether it knows of lifespans or not: what it uses is there before its
first request, and closed after its last."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from typing import Any

from oncekey.core.errors import OnceKeyError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Beside = Callable[[], AbstractAsyncContextManager[Any]]


class Lifespan:
    """`app`, with what runs `beside` it from before its start until after its end, and then
    `at_end` called. `at_end` may block: it gets a thread."""

    def __init__(self, app: App, at_end: Callable[[], None], beside: Beside = nullcontext) -> None:
        self._app = app
        self.at_end = at_end
        self._beside = beside

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        spoken = False
        running = AsyncExitStack()

        async def send_on(message: Message) -> None:
            nonlocal spoken
            spoken = True
            if message["type"] != "lifespan.startup.complete":
                await self._end(running)
            await send(message)

        try:
            await running.enter_async_context(self._beside())
        except OnceKeyError as error:
            await self._end(running)
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        try:
            await self._app(scope, receive, send_on)
        except Exception:
            if spoken:
                raise
            # The app knows nothing of lifespans, as servers take an error without a word.
            await self._live_alone(receive, send_on)

    async def _live_alone(self, receive: Receive, send: Send) -> None:
        await send({"type": "lifespan.startup.complete"})
        while (await receive())["type"] != "lifespan.shutdown":
            continue
        await send({"type": "lifespan.shutdown.complete"})

    async def _end(self, running: AsyncExitStack) -> None:
        try:
            await running.aclose()
        finally:
            await asyncio.to_thread(self.at_end)
