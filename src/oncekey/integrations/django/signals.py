"""Moments at which Django changes what a ledger stands on, and what follows from each."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import request_started, setting_changed
from django.db import connections
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate

from oncekey.core.errors import OnceKeyError
from oncekey.integrations.django.preferences import PREFIX, preferences

if TYPE_CHECKING:
    from oncekey.integrations.django.ledgers import Ledgers

log = logging.getLogger("oncekey.django")


def connect(app: Any, ledgers: Ledgers) -> None:
    def settings_changed(*, setting: str, **_: Any) -> None:
        if setting.startswith(PREFIX):
            preferences.cache_clear()
            ledgers.close()

    def tables_changed(*, using: str, **_: Any) -> None:
        """Migrated or flushed: whatever is remembered may not be there any more."""
        ledgers.close(using)

    def without_database(*, connection: Any, **_: Any) -> None:
        """Somebody connects to no database, in order to drop one that must not be in use."""
        if connection.alias == NO_DB_ALIAS:
            ledgers.close()

    def before_transaction(**_: Any) -> None:
        """With ATOMIC_REQUESTS open before the transaction: inside it, SQLite may be locked."""
        try:
            alias = preferences().database
            connection = connections[alias]
            if connection.settings_dict["ATOMIC_REQUESTS"] and not connection.in_atomic_block:
                ledgers.of(alias)
        except (ImproperlyConfigured, OnceKeyError) as error:
            # Requests without a key must not suffer; those with one are told.
            log.warning("the ledger cannot be opened: %s", error)

    setting_changed.connect(settings_changed, weak=False)
    post_migrate.connect(tables_changed, sender=app, weak=False)
    connection_created.connect(without_database, weak=False)
    request_started.connect(before_transaction, weak=False)
