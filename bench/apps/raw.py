"""Raw ASGI: no framework between the server and the handler."""

import asyncio
from typing import Any

from bench.apps.guards import guarded
from bench.apps.handler import SLOW_SECONDS, create_order, runs


async def _body(receive: Any) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body"):
        message = await receive()
        body += message.get("body", b"")
    return body


async def _answer(send: Any, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _lifespan(receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        return await _lifespan(receive, send)
    if scope["path"] == "/runs":
        return await _answer(send, 200, runs())
    body = await _body(receive)
    if scope["path"] == "/slow":
        await asyncio.sleep(SLOW_SECONDS)
    return await _answer(send, 201, create_order(body))


app = guarded(_app)
