"""Whose key it is: the organization's, else the user's, else that of the caller's credentials."""

from __future__ import annotations

from typing import Any

from asgiref.sync import async_to_sync, iscoroutinefunction
from django.conf import settings

from oncekey.integrations.django.preferences import preferences
from oncekey.wire.headers import Lines
from oncekey.wire.identity import Identity, namespace_for, namespace_of_credentials

# The names of session cookies that count among the credentials anyway.
_KNOWN = ("sessionid", "session")


def namespace_of_request(request: Any, lines: Lines) -> str:
    """Blocking: finding out who calls may ask the database."""
    function = preferences().organization
    if function is not None:
        found = (
            async_to_sync(function)(request) if iscoroutinefunction(function) else function(request)
        )
        if isinstance(found, Identity):
            return namespace_for(found)
        organization = getattr(found, "pk", found)
        if organization is not None and organization != "":
            return namespace_for(Identity(f"tenant_member:{organization}"))
    user = getattr(request, "user", None)
    if user is not None and user.is_authenticated and getattr(user, "pk", None) is not None:
        return namespace_for(Identity(f"user:{user.pk}"))
    return namespace_of_credentials(_credentials_of(request, lines))


def _credentials_of(request: Any, lines: Lines) -> list[bytes]:
    """What a caller proves itself with; a project may give the cookie of its sessions a name."""
    name = settings.SESSION_COOKIE_NAME
    session = request.COOKIES.get(name) if name not in _KNOWN else None
    return [*lines.credentials, session.encode("utf-8")] if session else lines.credentials
