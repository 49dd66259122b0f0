"""Paths that are answered before any route is asked: nobody would come to a route on one."""

from __future__ import annotations

from oncekey.config.settings import Settings

_EDGE = ("/edge/", "/api/v1/webhooks/", "/api/v1/operations/")
_ADMIN = ("/api/admin/",)
_CONSOLE = "/console"
_API = ("/api/tenants/", "/api/v1/workflows/")
_API_ITSELF = frozenset({"/api/v1/promises/complete", "/healthz", "/readyz", "/openapi.json"})
_BY_KEY = "by-idempotency-key"


def whose_path(path: str, settings: Settings) -> str | None:
    """Who owns the path of a route, when it is not free. One that only ranges over such paths, as
    `/{rest:path}` does, is asked for all the others."""
    beginning = path.partition("{")[0]
    if beginning.startswith(_EDGE) or f"{path}/" in _EDGE:
        return "the edge"
    if _BY_KEY in path.split("/")[-3:]:
        return "the edge, for answers that were lost"
    if beginning.startswith(_ADMIN) and settings.admin.enabled:
        return "the API of admins"
    if path == settings.metrics.path and settings.metrics.enabled:
        return "whoever reads metrics"
    if _is_of_console(path) and settings.console.enabled and settings.admin.enabled:
        return "the console"
    if _has_api(settings) and (beginning.startswith(_API) or path in _API_ITSELF):
        return "the API"
    return None


def _is_of_console(path: str) -> bool:
    return path == _CONSOLE or path.startswith(f"{_CONSOLE}/")


def _has_api(settings: Settings) -> bool:
    return bool(settings.app.workflows) if settings.server.api is None else settings.server.api
