"""Settings to objects: the ledger and the routes."""

from __future__ import annotations

from typing import Any

from oncekey.compose.ledger import open_ledger
from oncekey.compose.target import load_target
from oncekey.config.settings import RouteSettings, Settings
from oncekey.core.ledger import Ledger
from oncekey.wire.route import Route, route

_KEY_BY_POLICY = {"REQUIRED_A": "required", "ACCEPTED": "optional", "PROHIBITED": "prohibited"}


def ledger_of(settings: Settings, **options: Any) -> Ledger:
    """The ledger the settings describe. `options` are those of `open_ledger`, and win."""
    store = settings.store
    described = {
        "lease": store.lease,
        "heartbeat": store.heartbeat,
        "sweep_interval": store.sweep_interval,
        "cache_bytes": store.cache_bytes,
        "retention": settings.retention,
    }
    return open_ledger(store.url, **{**described, **options})


def routes_of(settings: Settings) -> tuple[Route, ...]:
    return tuple(_route_of(each, settings) for each in settings.routes)


def _route_of(each: RouteSettings, settings: Settings) -> Route:
    options = each.given()
    options.pop("example", None)
    if each.policy is not None:
        options["key"] = _KEY_BY_POLICY[options.pop("policy")]
    if each.recover is not None:
        options["recover"] = load_target(each.recover, settings.folder)
    return route(each.path, **options)
