"""The API with one caller, on every store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fixtures.api_site import ApiSite, Client, api_site
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer

STORES = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=STORES)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    match request.param:
        case "memory":
            return "memory://"
        case "sqlite":
            return f"sqlite:///{tmp_path}/oncekey.db"
        case _:
            server: PostgresServer = request.getfixturevalue("postgres")
            return new_schema(server.url())


@pytest.fixture
async def site(store_url: str) -> AsyncIterator[ApiSite]:
    async with api_site(store_url) as site:
        yield site


@pytest.fixture
async def acme(site: ApiSite) -> Client:
    return await site.client("acme")
