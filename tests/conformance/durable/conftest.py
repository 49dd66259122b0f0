"""Every engine on every kind of store, with workflows that stay in memory and ones that do not."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

import oncekey
from oncekey import App, NotFound
from oncekey.core.execution import Execution, Promise, Status
from oncekey.core.work import ListPromises
from tests.fixtures.stores import Place


async def until(look: Callable[[], Awaitable[Any]]) -> Any:
    """Wait for something the engine does in the background; the test's time-out is the bound."""
    while not (found := await look()):  # noqa: ASYNC110 - the engine has no event for a test
        await asyncio.sleep(0.005)
    return found


class Workshop:
    """A database on which an app is opened, closed and opened again."""

    def __init__(self, url: str, resident: int) -> None:
        self.url = url
        self.resident = resident
        # What lives in memory lives as long as its ledger.
        self._kept = oncekey.open(url) if url.startswith("memory") else None

    def app(self, **options: Any) -> App:
        return App(resident=self.resident, **options)

    @asynccontextmanager
    async def open(self, app: App) -> AsyncIterator[App]:
        async with app.open(self._kept or self.url):
            yield app

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()


async def status_of(app: App, number: str, tenant: str = "default") -> Status:
    return (await app.engine.execution(tenant, number)).status


async def waiting(app: App, number: str) -> Execution:
    """Once the workflow waits in the store, held by nobody."""

    async def look() -> Execution | None:
        found = await app.engine.execution("default", number)
        return found if found.status is Status.WAITING else None

    return await until(look)


async def promised(app: App, address: str) -> Promise:
    """Once there is a promise of that address."""

    async def look() -> Promise | None:
        with suppress(NotFound):
            return await app.promise(address)
        return None

    return await until(look)


async def promises_of(app: App, number: str) -> list[Promise]:
    execution = await app.engine.execution("default", number)
    return await app.engine.promises(ListPromises("default", execution=execution.id))


@pytest.fixture(params=[1000, 0], ids=["resident", "replayed"])
def workshop(request: pytest.FixtureRequest, place: Place) -> Iterator[Workshop]:
    made = Workshop(place.url, request.param)
    yield made
    made.close()
