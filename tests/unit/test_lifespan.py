"""What an app used is closed after its last request, whether it knows of lifespans or not."""

import asyncio
from typing import Any

import pytest

from oncekey.integrations.lifespan import App, Lifespan, Message, Receive, Scope, Send

pytestmark = pytest.mark.anyio


async def live(app: App) -> list[str]:
    """Start and stop `app` as a server does; answers what was said and done, in order."""
    told: list[str] = []
    inbox: asyncio.Queue[Message] = asyncio.Queue()

    async def send(message: Message) -> None:
        told.append(message["type"])
        if message["type"] == "lifespan.startup.complete":
            await inbox.put({"type": "lifespan.shutdown"})

    await inbox.put({"type": "lifespan.startup"})
    wrapped = Lifespan(app, lambda: told.append("closed"))
    try:
        await wrapped({"type": "lifespan"}, inbox.get, send)
    except RuntimeError as error:
        told.append(str(error))
    return told


async def test_after_an_app_that_knows_of_lifespans() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

    assert await live(app) == [
        "lifespan.startup.complete", "closed", "lifespan.shutdown.complete",
    ]  # fmt: skip


async def test_after_an_app_that_does_not() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"

    assert await live(app) == [
        "lifespan.startup.complete", "closed", "lifespan.shutdown.complete",
    ]  # fmt: skip


async def test_after_an_app_that_fails_to_start() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no"})
        raise RuntimeError("no")

    assert await live(app) == ["closed", "lifespan.startup.failed", "no"]


async def test_after_an_app_that_fails_to_stop() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.failed", "message": "no"})
        raise RuntimeError("no")

    assert await live(app) == [
        "lifespan.startup.complete", "closed", "lifespan.shutdown.failed", "no",
    ]  # fmt: skip


async def test_requests_pass_through() -> None:
    seen: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["path"])

    async def nothing(*_: Any) -> Any: ...

    await Lifespan(app, lambda: None)({"type": "http", "path": "/a"}, nothing, nothing)
    assert seen == ["/a"]
