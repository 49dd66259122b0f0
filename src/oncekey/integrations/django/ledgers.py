"""The ledgers of a process: one of its own per database, and one inside each open transaction."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from django.apps import apps
from django.db import connections

from oncekey.core.errors import SchemaOutdated
from oncekey.core.ledger import Ledger
from oncekey.integrations.django.database import (
    address_of,
    dialect_of,
    is_in_memory,
    is_in_test,
    url_of,
)
from oncekey.integrations.django.preferences import RETENTION, preferences
from oncekey.integrations.django.store import ConnectionStore
from oncekey.stores.requests import Setting
from oncekey.stores.values import JsonCodec


class _Opened(NamedTuple):
    address: tuple[Any, ...]
    ledger: Ledger


class Ledgers:
    """Opened when first used. A forked child opens its own."""

    def __init__(self, open_ledger: Callable[..., Ledger]) -> None:
        self._open_ledger = open_ledger
        self._inherited: list[Any] = []
        self._start()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget_parent)

    def of(self, alias: str) -> Ledger:
        """The ledger a request uses now: inside its transaction if it is in one, else durable."""
        connection = connections[alias]
        if is_in_memory(connection) or is_in_test(connection):
            return self._inside_of(alias)
        durable = self._durable(alias, connection)
        if not connection.in_atomic_block:
            return durable
        inside = self._inside_of(alias)
        # The ledger inside has no heartbeat to learn from that an operator changed a class.
        inside.retention_classes = durable.retention_classes
        return inside

    def durable(self, alias: str) -> Ledger:
        """The ledger with connections of its own, whose claims are on disk before anything runs."""
        return self._durable(alias, connections[alias])

    def _durable(self, alias: str, connection: Any) -> Ledger:
        opened = self._opened.get(alias)
        if opened is not None and opened.address == address_of(connection):
            return opened.ledger
        with self._lock:
            return self._opened_of(alias, connection)

    def for_operators(self, alias: str) -> Ledger:
        """The ledger for purge and sweep: durable where it can be, so that all processes notice."""
        connection = connections[alias]
        lodges = is_in_memory(connection) or is_in_test(connection)
        return self._inside_of(alias) if lodges else self.durable(alias)

    def close(self, alias: str | None = None) -> None:
        """Let go of connections and of what is remembered; the next use opens anew."""
        with self._lock:
            for name in [alias] if alias else {*self._opened, *self._inside}:
                self._inside.pop(name, None)
                opened = self._opened.pop(name, None)
                if opened is not None:
                    opened.ledger.close(grace=0)

    def _forget_parent(self) -> None:
        # Kept, so that nothing closes what the parent still uses.
        self._inherited.append(self._opened)
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._opened: dict[str, _Opened] = {}
        self._inside: dict[str, Ledger] = {}

    def _opened_of(self, alias: str, connection: Any) -> Ledger:
        opened = self._opened.get(alias)
        address = address_of(connection)
        if opened is not None:
            if opened.address == address:
                return opened.ledger
            opened.ledger.close(grace=0)
        chosen = preferences()
        try:
            ledger = self._open_ledger(
                url_of(connection),
                lease=chosen.lease_seconds,
                retention={RETENTION: chosen.ttl_seconds},
                migrate=False,
                observer=chosen.observer,
            )
        except SchemaOutdated as error:
            raise SchemaOutdated(_migrate_first(alias)) from error
        self._opened[alias] = _Opened(address, ledger)
        return ledger

    def _inside_of(self, alias: str) -> Ledger:
        ledger = self._inside.get(alias)
        if ledger is None:
            dialect_of(connections[alias])
            store = ConnectionStore(alias, lambda: self._setting_of(alias))
            ledger = self._inside[alias] = Ledger(
                store,
                codec=JsonCodec(),
                retention={RETENTION: preferences().ttl_seconds},
                cache_bytes=0,
                sweep_interval=0,
                observer=preferences().observer,
            )
        return ledger

    def _setting_of(self, alias: str) -> Setting | None:
        opened = self._opened.get(alias)
        if opened is None or opened.address != address_of(connections[alias]):
            return None
        setting: Setting = opened.ledger.store.setting()  # type: ignore[attr-defined]
        return setting


def ledgers() -> Ledgers:
    """The ledgers of this process, kept by the app."""
    found: Ledgers = apps.get_app_config("oncekey").ledgers
    return found


def is_inside(ledger: Ledger) -> bool:
    """Whether the ledger works through the connection of whoever calls it."""
    return isinstance(ledger.store, ConnectionStore)


def _migrate_first(alias: str) -> str:
    where = "" if alias == "default" else f" --database={alias}"
    return f"the tables of OnceKey are missing or old; run: python manage.py migrate oncekey{where}"
