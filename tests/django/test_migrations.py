"""Django's migrations make the store's own tables, and take them away again."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connections
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState

import oncekey
from oncekey.integrations.django.tables import version_of
from oncekey.stores.queries import newest
from tests.django.project.settings import postgres as postgres_settings
from tests.fixtures.postgres_server import PostgresServer

NAMES = {
    "oncekey_api_keys",
    "oncekey_audit",
    "oncekey_claims",
    "oncekey_controls",
    "oncekey_deliveries",
    "oncekey_events",
    "oncekey_execution_rows",
    "oncekey_key_rows",
    "oncekey_executions",
    "oncekey_journal",
    "oncekey_names",
    "oncekey_outcomes",
    "oncekey_owners",
    "oncekey_parked",
    "oncekey_promise_rows",
    "oncekey_promises",
    "oncekey_records",
    "oncekey_retention",
    "oncekey_schedules",
    "oncekey_schema",
    "oncekey_tokens",
    "oncekey_turns",
    "oncekey_webhooks",
}
SHAPE = {
    "sqlite": "SELECT type, name, sql FROM sqlite_master WHERE name LIKE 'oncekey%' ORDER BY name",
    "postgresql": """
        SELECT 'column', table_name || '.' || column_name, data_type
        FROM information_schema.columns WHERE table_name LIKE 'oncekey%'
        UNION SELECT 'index', indexname, indexdef FROM pg_indexes WHERE indexname LIKE 'oncekey%'
        UNION SELECT 'function', proname, prosrc FROM pg_proc WHERE proname LIKE 'oncekey%'
        ORDER BY 1, 2
    """,
}


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.postgres)])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A connection to a database with nothing in it, and the ledger's URL of the same."""
    connection = connections[request.param]
    before = dict(connection.settings_dict)
    connection.close()
    if request.param == "file":
        connection.settings_dict["NAME"] = str(tmp_path / "empty.db")
        yield connection, f"sqlite:///{tmp_path}/empty.db"
    else:
        server: PostgresServer = request.getfixturevalue("postgres_for_the_run")
        url = server.url(server.create_database())
        connection.settings_dict.update(postgres_settings(url))
        yield connection, url
    connection.close()
    connection.settings_dict.update(before)


def shape_of(connection: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(SHAPE[connection.vendor], None)
        return cursor.fetchall()


def tables_of(connection: Any) -> set[str]:
    with connection.cursor() as cursor:
        found = connection.introspection.table_names(cursor, include_views=True)
    return {name for name in found if name.startswith("oncekey")}


def migrate(connection: Any, *words: str) -> None:
    call_command("migrate", "oncekey", *words, database=connection.alias, verbosity=0)


def test_they_make_what_the_store_makes_itself(empty: Any) -> None:
    connection, url = empty
    migrate(connection)
    by_django = shape_of(connection)
    assert tables_of(connection) == NAMES
    migrate(connection, "zero")

    oncekey.open(url).close()

    assert shape_of(connection) == by_django


def test_backwards_leaves_nothing(empty: Any) -> None:
    connection, _ = empty
    migrate(connection)

    migrate(connection, "zero")

    assert shape_of(connection) == []
    assert version_of(connection) == 0


@pytest.mark.parametrize("version", [1, 2])
def test_backwards_to_one_leaves_what_it_made(empty: Any, version: int) -> None:
    connection, _ = empty
    migrate(connection, f"000{version}")
    before = shape_of(connection)
    migrate(connection)
    newest_shape = shape_of(connection)

    migrate(connection, f"000{version}")
    assert (shape_of(connection), version_of(connection)) == (before, version)

    migrate(connection)
    assert (shape_of(connection), version_of(connection)) == (newest_shape, newest("sqlite"))


def test_tables_that_are_there_already_are_kept(empty: Any) -> None:
    connection, url = empty
    ledger = oncekey.open(url)
    ledger.once("k", lambda: 1)

    migrate(connection)

    assert ledger.once("k", lambda: 2) == 1
    ledger.close()
    assert version_of(connection) == newest("sqlite")


def test_the_newest_migration_is_the_newest_version_of_the_tables() -> None:
    migrations = MigrationLoader(None).graph.nodes
    versions = {
        operation.version
        for (app, _), migration in migrations.items()
        if app == "oncekey"
        for group in migration.operations
        for operation in getattr(group, "database_operations", [group])
    }

    assert max(versions) == newest("sqlite") == newest("postgres")


def test_the_models_are_those_of_the_migrations() -> None:
    loader = MigrationLoader(None)
    wanted = ProjectState.from_apps(apps)

    changes = MigrationAutodetector(loader.project_state(), wanted).changes(loader.graph)

    assert "oncekey" not in changes


@pytest.mark.parametrize("version, made", [(1, "claims"), (2, "executions"), (3, "webhooks")])
def test_the_sql_can_be_shown(empty: Any, version: int, made: str) -> None:
    connection, _ = empty
    shown = io.StringIO()

    call_command("sqlmigrate", "oncekey", f"000{version}", database=connection.alias, stdout=shown)

    assert f"CREATE TABLE oncekey_{made}" in shown.getvalue()
    assert shown.getvalue().count("INSERT INTO oncekey_schema") == 1
    assert f"INSERT INTO oncekey_schema (version) VALUES ({version});" in shown.getvalue()
    assert tables_of(connection) == set()
