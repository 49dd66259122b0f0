"""The password of a PostgreSQL URL shows up nowhere, however the URL is wrong."""

import traceback

import pytest

from oncekey.core.clock import SystemClock
from oncekey.core.errors import ConfigurationError, OnceKeyError, StoreUnavailable
from oncekey.stores.postgres.connection import Database
from oncekey.stores.postgres.store import PostgresStore
from tests.fixtures.ports import unused_port

SECRET = "hunter2secret"


def told_by(url: str) -> str:
    """All that a log would show when this URL is opened."""
    with pytest.raises(OnceKeyError) as raised:
        PostgresStore(url, SystemClock()).open(lambda _: 0)
    return "".join(traceback.format_exception(raised.value)) + repr(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:{secret}@127.0.0.1:{port}/db",
        "postgresql://user@127.0.0.1:{port}/db?password={secret}",
        "postgresql://user:{secret}@{secret}@127.0.0.1:{port}/db",
        "postgresql://user:{secret}/x@127.0.0.1:{port}/db",
        "postgresql://user:{secret}@127.0.0.1:port/db",
        "postgresql://user:{secret}@127.0.0.1:{port}/db?nonsense=1",
        "postgresql://user:{secret}@nowhere.invalid:{port}/db",
        "postgresql://user:{secret}%zz@127.0.0.1:{port}/db",
    ],
)
def test_no_error_tells_the_password(url: str) -> None:
    told = told_by(url.format(secret=SECRET, port=unused_port()))
    assert SECRET not in told


def test_an_error_still_tells_what_is_wrong() -> None:
    port = unused_port()
    url = f"postgresql://user:{SECRET}@127.0.0.1:{port}/db"
    with pytest.raises(StoreUnavailable, match=str(port)):
        Database(url).connect()
    with pytest.raises(ConfigurationError, match="nonsense"):
        Database(url + "?nonsense=1")


def test_a_database_is_shown_without_its_password() -> None:
    shown = repr(Database(f"postgresql://user:{SECRET}@127.0.0.1:5/db"))
    assert shown == "127.0.0.1:5/db"
