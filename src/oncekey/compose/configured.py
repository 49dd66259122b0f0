"""Settings to objects: the ledger and the routes."""

from __future__ import annotations

from typing import Any

from oncekey.compose.ledger import open_ledger
from oncekey.compose.target import load_target
from oncekey.config.route_settings import RouteSettings
from oncekey.config.settings import Settings
from oncekey.core.ledger import Ledger
from oncekey.core.retention import DEFAULT_CLASSES
from oncekey.edge.policy import RULE_KEYS
from oncekey.stores.restate.options import RestateOptions
from oncekey.wire.route import Route
from oncekey.wire.rule import Rule, rule_of


def ledger_of(
    settings: Settings, *, hosts: bool = True, has_edge: bool = False, **options: Any
) -> Ledger:
    """The ledger the settings describe. `options` are those of `open_ledger`, and win. `hosts` is
    False for who only asks where others serve, `has_edge` True for who builds an edge on it."""
    store = settings.store
    described = {
        "lease": store.lease,
        "heartbeat": store.heartbeat,
        "sweep_interval": store.sweep_interval,
        "cache_bytes": store.cache_bytes,
        "retention": settings.retention,
        "restate": _part_in_cluster(settings, hosts=hosts, has_edge=has_edge),
    }
    return open_ledger(store.url, **{**described, **options})


def _part_in_cluster(settings: Settings, *, hosts: bool, has_edge: bool) -> RestateOptions:
    restate = settings.restate
    slowest = (each.timeout + each.connect_timeout for each in settings.upstreams.values())
    return RestateOptions(
        hosts,
        settings.server.workers > 1,
        restate.max_attempts,
        "kill" if restate.on_max_attempts == "kill" else "pause",
        {**DEFAULT_CLASSES, **settings.retention},
        max(slowest, default=0.0),
        has_edge,
    )


def routes_of(settings: Settings) -> tuple[Route, ...]:
    """Those of the app; the others have an upstream."""
    return tuple(
        Route(each.path, rule_for(each, settings))
        for each in settings.routes
        if each.upstream is None
    )


def rule_for(each: RouteSettings, settings: Settings) -> Rule:
    """How keys and answers are treated on a route, whoever is behind it."""
    options = each.rule_options()
    if each.policy is not None:
        options["key"] = RULE_KEYS[each.policy]
    if each.recover is not None:
        options["recover"] = load_target(each.recover, settings.folder)
    return rule_of(**options)
