"""The time that a body may take where somebody else reads it: the API, the console, an app. Whoever
is late is told so, in place of whatever they would answer."""

from __future__ import annotations

import asyncio

from oncekey.edge.reading import too_late
from oncekey.integrations.asgi import Message, Receive, Send, respond


class InTime:
    """`receive` and `send` for one request. `whole`: the time is for all of the body; else for each
    piece of it, as for an app that takes what it likes. From its end on nobody is hurried: whoever
    still listens then waits for the client to leave."""

    def __init__(self, receive: Receive, send: Send, timeout: float, *, whole: bool) -> None:
        self._receive = receive
        self._send = send
        self._timeout = timeout
        self._until = asyncio.get_running_loop().time() + timeout if whole else None
        self._ended = self._started = self._late = False

    async def receive(self) -> Message:
        if self._ended:
            return await self._receive()
        until = self._until or asyncio.get_running_loop().time() + self._timeout
        try:
            async with asyncio.timeout_at(until):
                message = await self._receive()
        except TimeoutError:
            self._late = self._ended = True
            return {"type": "http.disconnect"}
        self._ended = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if not self._late or self._started:
            self._started = True
            await self._send(message)
        elif message["type"] == "http.response.start":
            await respond(self._send, too_late())
