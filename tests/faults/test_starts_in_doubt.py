"""A start that was committed while whoever asked was told otherwise: it is there for its key, and
others may know of it already."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import oncekey
from oncekey import App, Context
from oncekey.core.errors import StoreUnavailable
from oncekey.core.work import ListExecutions

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


class Doubt:
    """The store fails once, right after it has committed a start."""

    def __init__(self) -> None:
        self.left = 1

    def __call__(self, point: str) -> None:
        if point == "Start-committed" and self.left:
            self.left -= 1
            raise StoreUnavailable("the disk is full")


@asynccontextmanager
async def opened(url: str, faults: Doubt | None = None) -> AsyncIterator[App]:
    app = App()

    @app.workflow
    async def order(ctx: Context, number: int) -> int:
        return await ctx.run("double", int.__mul__, number, 2)

    ledger = oncekey.open(url, faults=faults)
    try:
        async with app.open(ledger):
            yield app
    finally:
        ledger.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/oncekey.db"
    return str(request.getfixturevalue("postgres_url"))


async def test_what_others_were_told_of_is_not_taken_back(url: str) -> None:
    async with opened(url, Doubt()) as unsure, opened(url) as other:
        with pytest.raises(StoreUnavailable):
            await unsure.start("order", 21, key="o-1")
        seen = await other.start("order", 21, key="o-1")
        again = await unsure.start("order", 21, key="o-1")

        assert (seen.created, again.created) == (False, False)
        assert again.id == seen.id
        assert await seen.result(30) == 42


async def test_without_a_key_nobody_else_knows_and_nothing_is_left(url: str) -> None:
    async with opened(url, Doubt()) as unsure:
        with pytest.raises(StoreUnavailable):
            await unsure.start("order", 21)
        await (await unsure.start("order", 1)).result(30)

        other = oncekey.open(url)
        while len(listed := other.store.read(ListExecutions("default"))) > 1:  # noqa: ASYNC110 - undone by the writer
            await asyncio.sleep(0.01)
        other.close()
        assert [each.status.name for each in listed] == ["SUCCEEDED"]
