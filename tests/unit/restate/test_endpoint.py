"""The endpoint leaves the process it is in as it was."""

import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from oncekey.stores.restate.endpoint import Endpoint
from oncekey.stores.restate.place import RestatePlace

pytestmark = pytest.mark.anyio

PLACE = RestatePlace(("127.0.0.1:1",), ("127.0.0.1:1",), endpoint="http://127.0.0.1:0")


@pytest.fixture
def access_log() -> Iterator[logging.Logger]:
    """As uvicorn leaves it for the app that it serves."""
    logger = logging.getLogger("uvicorn.access")
    before = logger.handlers, logger.propagate, logger.level
    logger.handlers, logger.propagate = [logging.NullHandler()], False
    logger.setLevel(logging.INFO)
    yield logger
    logger.handlers, logger.propagate, logger.level = before


async def test_the_access_log_of_the_app_goes_on_without_the_calls_of_restate(
    access_log: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[Any] = []
    monkeypatch.setattr(access_log.handlers[0], "handle", logged.append)
    there: Any = None
    endpoint = Endpoint(PLACE, there, [])
    async with httpx.AsyncClient() as client:
        uri = endpoint.try_out()
        assert (await client.get(f"{uri}/discover")).status_code == 503
    await endpoint.close()
    assert logged == []
    access_log.info("a request of the app")
    assert len(logged) == 1
