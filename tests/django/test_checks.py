"""What cannot work is said before the first request."""

from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connections
from django.test import override_settings

from oncekey import ConfigurationError
from oncekey.integrations.django import checks
from oncekey.integrations.django.database import dialect_of, url_of
from oncekey.integrations.django.preferences import preferences


def found() -> list[tuple[str, str]]:
    return [(each.id, each.hint) for each in run_checks() if each.id.startswith("oncekey")]


def test_a_sound_project_has_nothing_to_be_told() -> None:
    assert found() == []


@pytest.mark.parametrize(
    "name, value, hint",
    [
        ("IDEMPOTENCY_KEY_TTL_HOURS", 0, "Use hours above 0 and up to 87600."),
        ("IDEMPOTENCY_KEY_TTL_HOURS", "24", "Use a number."),
        ("IDEMPOTENCY_KEY_TTL_HOURS", True, "Use a number."),
        ("IDEMPOTENCY_LEASE_SECONDS", 0, "Use seconds above 0."),
        ("IDEMPOTENCY_ATTACH_TIMEOUT_SECONDS", -1, "Use 0 or more."),
        ("IDEMPOTENCY_IN_FLIGHT", "wait", "Use one of conflict, attach."),
        ("IDEMPOTENCY_TAKEOVER", "recover", "Use one of rerun, refuse."),
        ("IDEMPOTENCY_REQUIRED", "yes", "Use True or False."),
        ("IDEMPOTENCY_DATABASE", "other", "Use one of DATABASES: default, file, postgres."),
        ("IDEMPOTENCY_ORGANIZATION", 7, "Use a function of one request."),
    ],
)
def test_a_setting_that_cannot_work_is_an_error(name: str, value: Any, hint: str) -> None:
    with override_settings(**{name: value}):
        assert found() == [("oncekey.E001", hint)]
        with pytest.raises(ImproperlyConfigured, match=name):
            preferences()


def test_an_organization_that_is_nowhere_is_an_error() -> None:
    with override_settings(IDEMPOTENCY_ORGANIZATION="nowhere.at_all"):
        ((number, hint),) = found()

    assert number == "oncekey.E001"
    assert "dotted path" in hint


def test_an_unknown_setting_is_a_warning_with_a_suggestion() -> None:
    with override_settings(IDEMPOTENCY_TTL_HOURS=24):
        assert found() == [("oncekey.W001", "Did you mean IDEMPOTENCY_KEY_TTL_HOURS?")]


def test_another_kind_of_database_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections["default"], "vendor", "mysql")

    ((number, hint),) = found()

    assert number == "oncekey.E002"
    assert "IDEMPOTENCY_DATABASE" in hint
    with pytest.raises(ConfigurationError, match="IDEMPOTENCY_DATABASE"):
        dialect_of(connections["default"])


def test_psycopg_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    with override_settings(IDEMPOTENCY_DATABASE="postgres"):
        assert found() == [("oncekey.E003", "Run: pip install 'oncekey[postgres]'")]


def test_the_middleware_must_know_the_user() -> None:
    authentication = "django.contrib.auth.middleware.AuthenticationMiddleware"
    with override_settings(MIDDLEWARE=["oncekey.django.IdempotencyMiddleware", authentication]):
        assert "oncekey.W002" in [number for number, _ in found()]


@pytest.mark.parametrize("database", ["file"], indirect=True)
def test_missing_tables_are_a_warning_where_databases_are_checked(database: str) -> None:
    assert checks.check_tables(databases=[database]) == []
    call_command("migrate", "oncekey", "zero", database=database, verbosity=0)
    try:
        (warning,) = checks.check_tables(databases=[database])
    finally:
        call_command("migrate", "oncekey", database=database, verbosity=0)

    assert warning.id == "oncekey.W003"
    assert checks.check_tables(databases=None) == []


@pytest.mark.parametrize("database", ["file"], indirect=True)
def test_migrate_does_not_warn_of_what_it_mends(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_command("migrate", "oncekey", "zero", database=database, verbosity=0)
    try:
        monkeypatch.setattr("sys.argv", ["manage.py", "migrate"])
        assert checks.check_tables(databases=[database]) == []
    finally:
        call_command("migrate", "oncekey", database=database, verbosity=0)


def test_the_ledger_goes_where_django_goes() -> None:
    postgres = connections["postgres"].copy()
    postgres.settings_dict.update(
        HOST="/run/pg", PORT="6543", USER="ann", PASSWORD="p@ss/w:rd?", NAME="shop data"
    )
    postgres.settings_dict["OPTIONS"] = {
        "sslmode": "require",
        "options": "-c search_path=shop",
        "assume_role": "seller",
        "pool": True,
        "server_side_binding": True,
    }

    from psycopg.conninfo import conninfo_to_dict

    assert conninfo_to_dict(url_of(postgres)) == {
        "dbname": "shop data",
        "host": "/run/pg",
        "port": "6543",
        "user": "ann",
        "password": "p@ss/w:rd?",
        "sslmode": "require",
        "options": "-c search_path=shop -c role=seller",
    }


@pytest.mark.parametrize(
    "name, url",
    [
        ("/data/shop.db", "sqlite:////data/shop.db"),
        ("shop.db", "sqlite:///shop.db"),
        ("file:/data/my%20shop.db?cache=private", "sqlite:////data/my shop.db"),
    ],
)
def test_files_are_found_by_name_or_uri(name: str, url: str) -> None:
    sqlite = connections["file"].copy()
    sqlite.settings_dict["NAME"] = name

    assert url_of(sqlite) == url
