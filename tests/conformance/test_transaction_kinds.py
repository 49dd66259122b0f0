"""Which connections are taken as a transaction, and what one with an old snapshot may not do."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy
from psycopg import IsolationLevel
from sqlalchemy.orm import Session

import oncekey
from oncekey import (
    Busy,
    ConfigurationError,
    Kind,
    Ledger,
    Operation,
    Outcome,
    Proceed,
    Ref,
    Replay,
    Scope,
)
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.stores import sqlite_url

OPERATION = Operation(Ref(Scope("t-default:_tenant:client:a", "pay"), "k"))
VALUE = Outcome(Kind.VALUE, body=b"1")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[tuple[Ledger, str]]:
    url = sqlite_url(tmp_path)
    ledger = oncekey.open(url)
    yield ledger, url
    ledger.close(grace=0)


@pytest.fixture
def server(postgres: PostgresServer) -> Iterator[tuple[Ledger, str]]:
    url = new_schema(postgres.url())
    ledger = oncekey.open(url)
    yield ledger, url
    ledger.close(grace=0)


def refused(ledger: Ledger, transaction: Any) -> str:
    with pytest.raises(ConfigurationError) as raised:
        ledger.begin(OPERATION, transaction=transaction)
    assert ledger.peek(OPERATION.ref) is None
    return str(raised.value)


def test_a_sqlite_connection_that_commits_each_statement_is_refused(
    file: tuple[Ledger, str],
) -> None:
    ledger, url = file
    path = url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert "begin a transaction" in refused(ledger, connection)


def test_a_sqlalchemy_session_that_commits_each_statement_is_refused(
    file: tuple[Ledger, str],
) -> None:
    ledger, url = file
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    with Session(engine) as session:
        assert "begin a transaction" in refused(ledger, session)
    engine.dispose()


@pytest.mark.postgres
def test_postgres_connections_that_commit_each_statement_are_refused(
    server: tuple[Ledger, str],
) -> None:
    ledger, url = server
    with psycopg.connect(url, autocommit=True) as connection:
        assert "begin a transaction" in refused(ledger, connection)
    engine = sqlalchemy.create_engine(
        url.replace("postgresql", "postgresql+psycopg", 1), isolation_level="AUTOCOMMIT"
    )
    with Session(engine) as session:
        assert "begin a transaction" in refused(ledger, session)
    engine.dispose()


@pytest.mark.postgres
def test_a_transaction_on_another_kind_of_database_is_refused(
    file: tuple[Ledger, str], server: tuple[Ledger, str]
) -> None:
    with psycopg.connect(server[1]) as connection:
        assert "same database" in refused(file[0], connection)
    with closing(sqlite3.connect(file[1].removeprefix("sqlite:///"))) as connection:
        assert "same database" in refused(server[0], connection)


@pytest.mark.postgres
@pytest.mark.anyio
async def test_an_async_connection_needs_the_async_form(server: tuple[Ledger, str]) -> None:
    ledger, url = server
    async with await psycopg.AsyncConnection.connect(url) as connection:
        with pytest.raises(ConfigurationError, match="async form"):
            ledger.begin(OPERATION, transaction=connection)
        decision = await ledger.abegin(OPERATION, transaction=connection)
        assert isinstance(decision, Proceed)
        await decision.claim.asettle(VALUE, transaction=connection)
    assert ledger.peek(OPERATION.ref).outcome == VALUE


def test_anything_else_is_refused_by_name(file: tuple[Ledger, str]) -> None:
    assert "not dict" in refused(file[0], {})


@pytest.mark.anyio
async def test_a_blocking_connection_serves_async_code(file: tuple[Ledger, str]) -> None:
    ledger, url = file
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
        decision = await ledger.abegin(OPERATION, transaction=connection)
        assert isinstance(decision, Proceed)
        await decision.claim.asettle(VALUE, transaction=connection)
    assert (await ledger.apeek(OPERATION.ref)).outcome == VALUE


@pytest.mark.postgres
def test_an_old_snapshot_takes_nothing_over(server: tuple[Ledger, str]) -> None:
    ledger, url = server
    gone = oncekey.open(url)
    assert isinstance(gone.begin(OPERATION), Proceed)
    gone.close(grace=0)
    with psycopg.connect(url) as connection:
        connection.isolation_level = IsolationLevel.REPEATABLE_READ
        assert isinstance(ledger.begin(OPERATION, transaction=connection), Busy)
    taken = ledger.begin(OPERATION)
    assert isinstance(taken, Proceed)
    assert taken.claim.fence == 2


@pytest.mark.postgres
def test_an_old_snapshot_replays_and_makes_place(server: tuple[Ledger, str]) -> None:
    _, url = server
    ledger = oncekey.open(url, retention={"interactive": 0.001})
    settled = ledger.begin(OPERATION)
    assert isinstance(settled, Proceed)
    settled.claim.settle(VALUE)
    with psycopg.connect(url) as connection:
        connection.isolation_level = IsolationLevel.SERIALIZABLE
        decision = ledger.begin(OPERATION, transaction=connection)
        while isinstance(decision, Replay):
            decision = ledger.begin(OPERATION, transaction=connection)
        assert isinstance(decision, Proceed)
        assert decision.claim.id != settled.claim.id
    ledger.close(grace=0)
