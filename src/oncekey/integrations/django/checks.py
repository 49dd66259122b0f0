"""System checks: what cannot work is said by `manage.py check`, before the first request."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error
from django.db import connections

from oncekey.integrations.django.database import DIALECTS
from oncekey.integrations.django.preferences import faults, preferences, unknown
from oncekey.integrations.django.tables import version_of
from oncekey.stores.queries import newest

_OURS = "oncekey.django.IdempotencyMiddleware"
_AUTHENTICATION = "django.contrib.auth.middleware.AuthenticationMiddleware"


def register() -> None:
    for check in (check_settings, check_vendor, check_middleware):
        checks.register(check)
    checks.register(check_tables, checks.Tags.database)


def check_settings(**_: Any) -> list[CheckMessage]:
    found: list[CheckMessage] = [
        Error(fault.message, hint=fault.hint, id="oncekey.E001") for fault in faults()
    ]
    for name, meant in unknown():
        hint = f"Did you mean {meant}?" if meant else "Remove it; nothing reads it."
        found.append(
            checks.Warning(f"{name} is not a setting of OnceKey.", hint=hint, id="oncekey.W001")
        )
    return found


def check_vendor(**_: Any) -> list[CheckMessage]:
    if any(faults()):
        return []
    connection = connections[preferences().database]
    if connection.vendor not in DIALECTS:
        return [
            Error(
                f"OnceKey cannot keep keys in {connection.display_name} "
                f"(database {connection.alias!r}).",
                hint="Add a SQLite or PostgreSQL database to DATABASES and name it in "
                "IDEMPOTENCY_DATABASE.",
                id="oncekey.E002",
            )
        ]
    if connection.vendor == "postgresql" and find_spec("psycopg") is None:
        return [
            Error(
                "OnceKey needs psycopg 3 for PostgreSQL; psycopg2 alone is not enough.",
                hint="Run: pip install 'oncekey[postgres]'",
                id="oncekey.E003",
            )
        ]
    return []


def check_middleware(**_: Any) -> list[CheckMessage]:
    order = list(settings.MIDDLEWARE)
    if _OURS not in order or _AUTHENTICATION not in order:
        return []
    if order.index(_OURS) > order.index(_AUTHENTICATION):
        return []
    return [
        checks.Warning(
            "IdempotencyMiddleware comes before AuthenticationMiddleware and does not know users.",
            hint=f"Move {_OURS!r} below {_AUTHENTICATION!r}.",
            id="oncekey.W002",
        )
    ]


def check_tables(*, databases: list[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Only with `check --database`, as all checks that connect."""
    if any(faults()) or preferences().database not in (databases or ()):
        return []
    if sys.argv[1:2] == ["migrate"]:
        # It asks before it makes the tables, and would say what it is about to mend.
        return []
    connection = connections[preferences().database]
    if connection.vendor not in DIALECTS:
        return []
    current, needed = version_of(connection), newest(DIALECTS[connection.vendor])
    if current == needed:
        return []
    return [
        checks.Warning(
            f"The tables of OnceKey in {connection.alias!r} are at version {current}, "
            f"this release needs {needed}.",
            hint="Run: python manage.py migrate oncekey",
            id="oncekey.W003",
        )
    ]
