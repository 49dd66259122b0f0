"""Exactly once in async applications: effect and outcome in one transaction, both or neither."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy
from anyio import Event, create_task_group
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

import oncekey
from oncekey import InProgress, Ledger
from tests.fixtures.banks import PAY, Bank, Mishap, plain
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.stores import sqlite_url

pytestmark = pytest.mark.anyio
Begin = Callable[[str], AbstractAsyncContextManager[Any]]


@asynccontextmanager
async def psycopg_connection(url: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(url, row_factory=dict_row) as connection:
        yield connection


@asynccontextmanager
async def engine_of(url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(url)
    try:
        yield engine
    finally:
        await engine.dispose()


@asynccontextmanager
async def aiosqlite_session(url: str) -> AsyncIterator[Any]:
    async with (
        engine_of(url.replace("sqlite", "sqlite+aiosqlite", 1)) as engine,
        AsyncSession(engine) as session,
        session.begin(),
    ):
        yield session


@asynccontextmanager
async def psycopg_session(url: str) -> AsyncIterator[Any]:
    async with (
        engine_of(url.replace("postgresql", "postgresql+psycopg", 1)) as engine,
        AsyncSession(engine) as session,
        session.begin(),
    ):
        yield session


@asynccontextmanager
async def asyncpg_connection(url: str) -> AsyncIterator[Any]:
    address, _, options = url.partition("?options=-csearch_path%3D")
    engine = create_async_engine(
        address.replace("postgresql", "postgresql+asyncpg", 1),
        connect_args={"server_settings": {"search_path": options}},
    )
    try:
        async with engine.begin() as connection:
            yield connection
    finally:
        await engine.dispose()


POSTGRES = [
    pytest.param(way, id=way.__name__, marks=pytest.mark.postgres)
    for way in (psycopg_connection, psycopg_session, asyncpg_connection)
]


@pytest.fixture(params=[aiosqlite_session, *POSTGRES])
def begin(request: pytest.FixtureRequest) -> Begin:
    way: Begin = request.param
    return way


@pytest.fixture
def bank(request: pytest.FixtureRequest, begin: Begin, tmp_path: Path) -> Bank:
    if begin is aiosqlite_session:
        return Bank(sqlite_url(tmp_path), plain)
    server: PostgresServer = request.getfixturevalue("postgres")
    return Bank(new_schema(server.url()), plain)


@pytest.fixture
def ledger(bank: Bank) -> Any:
    opened = oncekey.open(bank.url)
    yield opened
    opened.close()


async def pay_once(ledger: Ledger, transaction: Any, before: Any = None) -> Any:
    async def charge() -> str:
        sqlalchemys = hasattr(transaction, "run_sync")
        await transaction.execute(sqlalchemy.text(PAY) if sqlalchemys else PAY)
        if before is not None:
            await before()
        return "paid"

    return await ledger.aonce("k", charge, transaction=transaction)


async def test_effect_and_outcome_commit_together(ledger: Ledger, bank: Bank, begin: Begin) -> None:
    answers = []
    for _ in range(3):
        async with begin(bank.url) as transaction:
            answers.append(await pay_once(ledger, transaction))
    assert answers == ["paid"] * 3
    assert bank.payments() == 1


async def test_effect_and_outcome_roll_back_together(
    ledger: Ledger, bank: Bank, begin: Begin
) -> None:
    with suppress(Mishap):
        async with begin(bank.url) as transaction:
            assert await pay_once(ledger, transaction) == "paid"
            raise Mishap
    assert bank.payments() == 0
    async with begin(bank.url) as transaction:
        assert await pay_once(ledger, transaction) == "paid"
    assert bank.payments() == 1


@pytest.mark.parametrize("begin", POSTGRES, indirect=True)
async def test_a_duplicate_of_one_in_flight_is_told_so_at_once(
    ledger: Ledger, bank: Bank, begin: Begin
) -> None:
    running, go_on, answers = Event(), Event(), []

    async def hold() -> None:
        running.set()
        await go_on.wait()

    async def slowly() -> None:
        async with begin(bank.url) as transaction:
            answers.append(await pay_once(ledger, transaction, hold))

    async with create_task_group() as tasks:
        tasks.start_soon(slowly)
        await running.wait()
        with pytest.raises(InProgress):
            async with begin(bank.url) as transaction:
                await pay_once(ledger, transaction)
        go_on.set()

    assert answers == ["paid"]
    assert bank.payments() == 1
