"""The body of a request, read from an ASGI server: bounded in size where it is kept, and in time
always."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from oncekey.integrations.asgi import Message, Receive, read
from oncekey.wire.body import Body
from oncekey.wire.problem import Response, problem


class RequestCut(Exception):
    """The client went away, or was too slow, in the middle of a body that is handed on."""


def too_late() -> Response:
    """Who is slow with one request is not waited for with the next."""
    answer = problem("request-timeout")
    return answer._replace(headers=(*answer.headers, (b"connection", b"close")))


class Reading:
    def __init__(self, receive: Receive, timeout: float) -> None:
        self._receive = receive
        self._timeout = timeout

    async def whole(self, limit: int, content_type: bytes = b"") -> bytes | Body | Response:
        """All of it; a refusal when it is too large, too slow or cut off."""
        try:
            async with asyncio.timeout(self._timeout):
                message = await self._receive()
                body: bytes | None = message.get("body")
                if body is not None and not message.get("more_body") and len(body) <= limit:
                    return body
                return await read(message, self._receive, content_type, limit)
        except TimeoutError:
            return too_late()

    async def stream(self) -> bytes | AsyncIterator[bytes] | Response:
        """All of it when it is there already, else what is there and what comes."""
        try:
            message = await self._next()
        except RequestCut:
            return too_late()
        if not message.get("more_body"):
            body: bytes = message.get("body", b"")
            return body
        return self._pieces(message)

    async def _pieces(self, message: Message) -> AsyncIterator[bytes]:
        while True:
            chunk: bytes = message.get("body", b"")
            if chunk:
                yield chunk
            if not message.get("more_body"):
                return
            message = await self._next()

    async def _next(self) -> Message:
        try:
            async with asyncio.timeout(self._timeout):
                message = await self._receive()
        except TimeoutError as error:
            raise RequestCut from error
        if message["type"] == "http.disconnect":
            raise RequestCut
        return message
