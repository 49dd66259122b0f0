"""What an app uses is there before it starts and closed after its last request, whether it knows of
lifespans or not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from oncekey import ConfigurationError, OnceKeyError
from oncekey.integrations.lifespan import App, Lifespan, Message, Receive, Scope, Send

pytestmark = pytest.mark.anyio


async def live(app: App, obstacle: OnceKeyError | None = None) -> list[str]:
    """Start and stop `app` as a server does; answers what was said and done, in order. `obstacle`
    keeps the rest from starting beside it."""
    told: list[str] = []
    inbox: asyncio.Queue[Message] = asyncio.Queue()

    async def send(message: Message) -> None:
        told.append(message["type"])
        if message["type"] == "lifespan.startup.complete":
            await inbox.put({"type": "lifespan.shutdown"})

    @asynccontextmanager
    async def beside() -> AsyncIterator[None]:
        if obstacle is not None:
            raise obstacle
        told.append("opened")
        yield
        told.append("ended")

    await inbox.put({"type": "lifespan.startup"})
    wrapped = Lifespan(app, lambda: told.append("closed"), beside)
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
        "opened", "lifespan.startup.complete", "ended", "closed", "lifespan.shutdown.complete",
    ]  # fmt: skip


async def test_after_an_app_that_does_not() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"

    assert await live(app) == [
        "opened", "lifespan.startup.complete", "ended", "closed", "lifespan.shutdown.complete",
    ]  # fmt: skip


async def test_after_an_app_that_fails_to_start() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no"})
        raise RuntimeError("no")

    assert await live(app) == ["opened", "ended", "closed", "lifespan.startup.failed", "no"]


async def test_after_an_app_that_fails_to_stop() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.failed", "message": "no"})
        raise RuntimeError("no")

    assert await live(app) == [
        "opened", "lifespan.startup.complete", "ended", "closed", "lifespan.shutdown.failed", "no",
    ]  # fmt: skip


async def test_an_app_is_not_begun_without_what_runs_beside_it() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("it was begun")

    assert await live(app, ConfigurationError("no port")) == ["closed", "lifespan.startup.failed"]


async def test_requests_pass_through() -> None:
    seen: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["path"])

    async def nothing(*_: Any) -> Any: ...

    await Lifespan(app, lambda: None)({"type": "http", "path": "/a"}, nothing, nothing)
    assert seen == ["/a"]
