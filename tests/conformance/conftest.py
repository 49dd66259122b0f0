"""Every kind of store, one after the other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.stores import Caller, Place, sqlite_url

POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)


def _url_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    if kind == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        return new_schema(server.url())
    return sqlite_url(folder) if kind == "sqlite" else "memory://"


@pytest.fixture(params=["memory", "sqlite", POSTGRES])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    opened = Place(_url_of(request.param, request, tmp_path))
    yield opened
    opened.close()


@pytest.fixture
def caller(place: Place) -> Caller:
    return place.open()


@pytest.fixture(params=["sqlite", POSTGRES])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A database that several processes may use."""
    opened = Place(_url_of(request.param, request, tmp_path))
    yield opened
    opened.close()
