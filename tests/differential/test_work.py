"""The same durable work in every store, side by side: all answer as the oracle does."""

from pathlib import Path

import pytest

from tests.fixtures.frozen import FrozenClock
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.stores import Place, sqlite_url
from tests.fixtures.walk import Walk
from tests.fixtures.work import Worker

pytestmark = pytest.mark.postgres


def walk(urls: list[str], seed: int, steps: int = 300) -> None:
    clock = FrozenClock()
    places = [Place(url) for url in urls]
    try:
        for place in places:
            place.clock = clock
        Walk([Worker(place.open()) for place in places], clock, seed).run(steps)
    finally:
        for place in places:
            place.close()


@pytest.mark.parametrize("seed", range(6))
def test_all_stores_answer_alike(postgres: PostgresServer, tmp_path: Path, seed: int) -> None:
    walk(["memory://", sqlite_url(tmp_path), new_schema(postgres.url())], seed)
