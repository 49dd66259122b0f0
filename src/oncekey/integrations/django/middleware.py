"""`IdempotencyMiddleware`: every unsafe request with a key, without touching a view."""

from __future__ import annotations

from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.urls import Resolver404, resolve

from oncekey.integrations.django.mixin import IdempotentMixin
from oncekey.integrations.django.protection import Protection


class IdempotencyMiddleware:
    """Put it after AuthenticationMiddleware. Views with a rule of their own keep it."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response
        self._protection = Protection()
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: Any) -> Any:
        if self._is_async:
            return self._acall(request)
        if _has_own_rule(request):
            return self.get_response(request)
        return self._protection.call(request, lambda: self.get_response(request))

    async def _acall(self, request: Any) -> Any:
        if _has_own_rule(request):
            return await self.get_response(request)
        return await self._protection.acall(request, lambda: self.get_response(request))


def _has_own_rule(request: Any) -> bool:
    """Resolves the path, as Django will: the view and its route are known from here on."""
    try:
        match = resolve(request.path_info, getattr(request, "urlconf", None))
    except Resolver404:
        return False
    request.resolver_match = match
    view = match.func
    kind = getattr(view, "view_class", None) or getattr(view, "cls", None)
    mixed = isinstance(kind, type) and issubclass(kind, IdempotentMixin)
    return mixed or bool(getattr(view, "oncekey_protected", False))
