"""The end of an ASGI app: what it used is closed after its last request, whether it knows of
lifespans or not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Lifespan:
    """`app`, and `at_end` called when it has shut down. `at_end` may block: it gets a thread."""

    def __init__(self, app: App, at_end: Callable[[], None]) -> None:
        self._app = app
        self.at_end = at_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        spoken = False

        async def send_on(message: Message) -> None:
            nonlocal spoken
            spoken = True
            if message["type"] != "lifespan.startup.complete":
                await asyncio.to_thread(self.at_end)
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        except Exception:
            if spoken:
                raise
            # The app knows nothing of lifespans, as servers take an error without a word.
            await self._live_alone(receive, send)

    async def _live_alone(self, receive: Receive, send: Send) -> None:
        await send({"type": "lifespan.startup.complete"})
        while (await receive())["type"] != "lifespan.shutdown":
            continue
        await asyncio.to_thread(self.at_end)
        await send({"type": "lifespan.shutdown.complete"})
