"""Settings to OpenAPI: the edge's own document, and that of a service behind it with what the edge
adds. Nothing is opened for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from oncekey.compose.edge import edge_routes_of
from oncekey.compose.schemes import schemes_of
from oncekey.config.settings import Settings
from oncekey.core.errors import ConfigurationError
from oncekey.core.retention import DEFAULT_CLASSES
from oncekey.edge.document.annotate import Annotated, annotate
from oncekey.edge.document.openapi import document_of
from oncekey.edge.policy import EdgeRoute
from oncekey.edge.services.place import is_service

Part = dict[str, Any]


def document_for(settings: Settings) -> Part:
    return document_of(
        _routes_of(settings),
        retention=_kept(settings),
        schemes=schemes_of(settings),
        decides=settings.edge.decide,
    )


def annotated_for(settings: Settings, document: Any, upstream: str | None) -> Annotated:
    """Only by the routes of that upstream, when one is named. Raises `ConfigurationError`."""
    if upstream is not None and upstream not in settings.upstreams:
        known = ", ".join(sorted(settings.upstreams)) or "none"
        raise ConfigurationError(f"there is no upstream {upstream!r}; there are: {known}")
    routes = tuple(
        each for each in settings.routes if upstream is None or each.upstream == upstream
    )
    base = "" if upstream is None else _base_of(settings.upstreams[upstream].url)
    only = _routes_of(replace(settings, routes=routes))
    return annotate(document, only, base=base, retention=_kept(settings))


def _base_of(url: str) -> str:
    """What stands before every path; a handler on Restate has no paths."""
    return "" if is_service(url) else urlsplit(url).path


def _routes_of(settings: Settings) -> tuple[EdgeRoute, ...]:
    """With the names of upstreams in place of these: nothing is to be asked."""
    pairs = zip(edge_routes_of(settings), settings.routes, strict=True)
    return tuple(replace(route, upstream=each.upstream) for route, each in pairs)


def _kept(settings: Settings) -> dict[str, float]:
    """Seconds by class, as far as the settings say; what is set at run time is in the store."""
    return {**DEFAULT_CLASSES, **settings.retention}
