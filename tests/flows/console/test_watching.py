"""Those who watch a page are counted as they come, and no longer than they stay."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import pytest

from oncekey.console.live import LONGEST_PATH, MOST_WATCHERS
from tests.fixtures.api_site import api_site
from tests.fixtures.operator import Operator, at_console

pytestmark = pytest.mark.anyio


@pytest.fixture
async def operator() -> AsyncIterator[Operator]:
    async with api_site("memory://") as site, at_console(site) as operator:
        yield operator


class Watcher:
    """Watches the overview, until it leaves; or is gone before it is sent anything."""

    def __init__(self, operator: Operator, *, gone: bool = False) -> None:
        self.status = 0
        self._gone = gone
        self._answered, self._leaves = asyncio.Event(), asyncio.Event()
        cookie = "; ".join(f"{name}={value}" for name, value in operator.client.cookies.items())
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "method": "GET",
            "path": "/console/live",
            "root_path": "",
            "scheme": "http",
            "query_string": b"page=%2Fconsole",
            "headers": [(b"host", b"console"), (b"cookie", cookie.encode())],
        }
        self._task = asyncio.create_task(operator.console(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        await self._leaves.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._answered.set()
            if self._gone:
                raise OSError

    async def answered(self) -> int:
        await self._answered.wait()
        return self.status

    async def leave(self) -> None:
        self._leaves.set()
        await asyncio.gather(self._task, return_exceptions=True)


async def test_no_more_come_at_once_than_there_is_room_for(operator: Operator) -> None:
    watchers = [Watcher(operator) for _ in range(MOST_WATCHERS + 6)]
    answers = Counter([await each.answered() for each in watchers])
    assert answers == {200: MOST_WATCHERS, 204: 6}
    for each in watchers:
        await each.leave()


@pytest.mark.parametrize("gone", [False, True])
async def test_whoever_leaves_gives_the_place_back(operator: Operator, gone: bool) -> None:
    for _ in range(2):
        watchers = [Watcher(operator, gone=gone) for _ in range(MOST_WATCHERS)]
        assert {await each.answered() for each in watchers} == {200}
        for each in watchers:
            await each.leave()


async def test_what_is_too_long_to_be_watched_is_not_watched_in_part(operator: Operator) -> None:
    page = "/console/keys?prefix=" + "a" * LONGEST_PATH
    answer = await operator.client.get(f"/console/live?page={quote(page, safe='')}")
    assert answer.status_code == 404
    assert "sse-connect" in await operator.html("/keys", prefix="a")
    answer = await operator.client.get(page)
    assert "sse-connect" not in answer.text
