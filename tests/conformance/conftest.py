"""Every kind of store, one after the other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.stores import Caller, Place, sqlite_url

POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)
RESTATE = pytest.param("restate", marks=pytest.mark.restate)


def _url_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    match kind:
        case "postgres":
            server: PostgresServer = request.getfixturevalue("postgres")
            return new_schema(server.url())
        case "restate":
            request.getfixturevalue("patient")
            url: str = request.getfixturevalue("restate_url")
            return url
        case "sqlite":
            return sqlite_url(folder)
        case _:
            return "memory://"


@pytest.fixture(params=["memory", "sqlite", POSTGRES, RESTATE])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    opened = Place(_url_of(request.param, request, tmp_path))
    yield opened
    opened.close()


@pytest.fixture
def caller(place: Place) -> Caller:
    return place.open()


@pytest.fixture(params=["sqlite", POSTGRES, RESTATE])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A store that several processes may use."""
    opened = Place(_url_of(request.param, request, tmp_path))
    yield opened
    opened.close()


@pytest.fixture(params=["sqlite", POSTGRES])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """One that keeps its ledger in tables, beside an application's and in its transactions."""
    opened = Place(_url_of(request.param, request, tmp_path))
    yield opened
    opened.close()
