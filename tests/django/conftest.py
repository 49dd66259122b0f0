"""Django is set up once per process; each test chooses where keys and charges are kept."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import django
import pytest

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.django.project.settings")
django.setup()

from django.core.management import call_command  # noqa: E402 - only after Django is set up
from django.db import connections, transaction  # noqa: E402
from django.test import Client, override_settings  # noqa: E402

from oncekey.integrations.django.ledgers import ledgers  # noqa: E402
from tests.django.project.settings import postgres as postgres_settings  # noqa: E402
from tests.fixtures.postgres_server import PostgresServer  # noqa: E402

Send = Callable[..., Any]
KEPT = {"auth_permission", "django_content_type"}
ALIASES = ["default", "file", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(scope="session")
def migrated(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Any]:
    """Makes a database ready when it is first asked for."""
    ready: set[str] = set()

    def make(alias: str) -> None:
        if alias in ready:
            return
        if alias == "file":
            connections[alias].settings_dict["NAME"] = str(tmp_path_factory.mktemp("d") / "p.db")
        if alias == "postgres":
            server: PostgresServer = request.getfixturevalue("postgres_for_the_run")
            given = postgres_settings(server.url(server.create_database()))
            connections[alias].settings_dict.update(given)
        call_command("migrate", database=alias, run_syncdb=True, verbosity=0)
        ready.add(alias)

    yield make
    ledgers().close()
    connections.close_all()


@pytest.fixture
def database(request: pytest.FixtureRequest, migrated: Any) -> Iterator[str]:
    """The alias of an empty database in which everything of this test happens."""
    alias = getattr(request, "param", "default")
    with override_settings(IDEMPOTENCY_DATABASE=alias):
        migrated(alias)
        yield alias
        ledgers().close()
        empty(connections[alias])
        if alias != "default":
            connections[alias].close()


def empty(connection: Any) -> None:
    """As `flush`, but without what that does for every app: rows are few here."""
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        for name in names:
            if name not in KEPT:
                cursor.execute(f"DELETE FROM {name}")


@pytest.fixture
def client(database: str) -> Client:
    return Client(raise_request_exception=False)


@pytest.fixture
def send(client: Client) -> Send:
    """`send("/plain/", "k1", amount=3)`: a POST with that key and JSON body."""

    def post(path: str, key: str | None = None, *, amount: int = 1, **headers: str) -> Any:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if key is not None:
            given["Idempotency-Key"] = key
        return client.post(path, {"amount": amount}, "application/json", headers=given)

    return post


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests that ask for `database` run on every kind of it, unless they choose."""
    chosen = any(mark.name == "parametrize" for mark in metafunc.definition.iter_markers())
    if "database" in metafunc.fixturenames and not chosen:
        metafunc.parametrize("database", ALIASES, indirect=True)
