"""Pages that change while somebody looks: what is live in them is sent anew when it is another.

Looking costs little: a page is made again after many times as long as making it took.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from oncekey.console.rendering import Rendering
from oncekey.console.visit import Place, Refused, Visit
from oncekey.core.errors import OnceKeyError
from oncekey.core.sessions import Session

MOST_WATCHERS = 64
SHORTEST_PAUSE = 2.0
_SHARE = 100
_NOTHING = "There is nothing to watch."
LONGEST_PATH = 4000

Found = tuple[Place, Visit, dict[str, Any]]
Find = Callable[[Request, Session, str, Mapping[str, str]], Found | None]
Who = Callable[[], Awaitable[Session | None]]


class Live:
    def __init__(self, find: Find, rendering: Rendering) -> None:
        self._find = find
        self._rendering = rendering
        self._over = asyncio.Event()
        self._watchers = 0

    def let_go(self) -> None:
        self._over.set()

    async def answer(self, request: Request, who: Who) -> Response:
        page = request.query_params.get("page", "")
        if len(page) > LONGEST_PATH:
            return Response(_NOTHING, 404, media_type="text/plain")
        path, _, asked = page.partition("?")
        path, query = unquote(path), dict(parse_qsl(asked))
        session = await who()
        if session is None or self._find(request, session, path, query) is None:
            return Response(_NOTHING, 404, media_type="text/plain")
        if self._watchers >= MOST_WATCHERS or self._over.is_set():
            # What a browser takes for: do not come back.
            return Response(status_code=204)
        # At once: those who come at the same time are counted before any of them is sent anything.
        self._watchers += 1
        return _Stream(self._changes(request, who, path, query), self._leave)

    def _leave(self) -> None:
        self._watchers -= 1

    async def _changes(
        self, request: Request, who: Who, path: str, query: Mapping[str, str]
    ) -> AsyncIterator[bytes]:
        shown = ""
        yield b"retry: 5000\n\n"
        while True:
            began = time.perf_counter()
            seen = await self._look(request, who, path, query)
            if seen is None:
                break
            # A line now and then also finds out whether somebody is still there.
            yield _event("live", seen) if seen and seen != shown else b": still here\n\n"
            shown = seen or shown
            if await self._rest(time.perf_counter() - began):
                return
        yield _event("gone", "")

    async def _look(
        self, request: Request, who: Who, path: str, query: Mapping[str, str]
    ) -> str | None:
        """Empty where it cannot be seen now, as while the store is away; None for nobody."""
        try:
            session = await who()
            if session is None:
                return None
            found = self._find(request, session, path, query)
            if found is None:
                return ""
            place, visit, around = found
            page = await place.show(visit)
        except (Refused, OnceKeyError):
            return ""
        values = {**around, "query": dict(query), **page.values}
        return self._rendering.live(page.template, values)

    async def _rest(self, took: float) -> bool:
        """Whether the server is about to stop."""
        try:
            async with asyncio.timeout(max(SHORTEST_PAUSE, took * _SHARE)):
                return await self._over.wait()
        except TimeoutError:
            return False


class _Stream(StreamingResponse):
    """Gives a watcher's place back when it is over, whether it was ever begun or not."""

    def __init__(self, changes: AsyncIterator[bytes], leave: Callable[[], None]) -> None:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(changes, media_type="text/event-stream", headers=headers)
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


def _event(name: str, content: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in content.splitlines()) or "data:\n"
    return f"event: {name}\n{lines}\n".encode()
