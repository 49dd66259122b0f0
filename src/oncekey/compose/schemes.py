"""Settings to security schemes: how callers say who they are, in OpenAPI's words."""

from __future__ import annotations

from typing import Any

from oncekey.config.settings import Settings
from oncekey.edge.document.openapi import ADMIN


def schemes_of(settings: Settings) -> dict[str, Any]:
    """What a trusted gateway tells is no business of whoever calls it."""
    auth = settings.auth
    schemes: dict[str, Any] = {}
    if auth.jwt is not None:
        schemes["jwt"] = {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
    schemes["apiKey"] = {"type": "apiKey", "in": "header", "name": "X-API-Key"}
    schemes["apiKeyBearer"] = {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key in place of a token.",
    }
    schemes[ADMIN] = {
        "type": "http",
        "scheme": "bearer",
        "description": "The API key of an operator, `oka_…`.",
    }
    return schemes
