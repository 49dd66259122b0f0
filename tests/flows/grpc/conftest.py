"""A gRPC server on every store, shared by the tests of a file; each has tenants of its own."""

import itertools
from collections.abc import AsyncIterator

import pytest

from tests.fixtures.grpc_site import Client, GrpcSite, grpc_site
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer

STORES = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
NUMBERS = itertools.count()


@pytest.fixture(scope="module", params=STORES)
def store_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    match request.param:
        case "memory":
            return "memory://"
        case "sqlite":
            return f"sqlite:///{tmp_path_factory.mktemp('grpc')}/oncekey.db"
        case _:
            server: PostgresServer = request.getfixturevalue("postgres_for_the_run")
            return new_schema(server.url())


@pytest.fixture(scope="module")
async def site(store_url: str) -> AsyncIterator[GrpcSite]:
    async with grpc_site(store_url) as site:
        yield site


@pytest.fixture
async def acme(site: GrpcSite) -> Client:
    return await site.client(f"acme-{next(NUMBERS)}")


@pytest.fixture
async def globex(site: GrpcSite) -> Client:
    """Somebody else."""
    return await site.client(f"globex-{next(NUMBERS)}")
