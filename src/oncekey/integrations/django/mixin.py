"""`IdempotentMixin` for REST framework's views and viewsets, and for Django's class-based views."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from oncekey.core.errors import ConfigurationError
from oncekey.integrations.django.exchange import django_response, forget_body
from oncekey.integrations.django.protection import Protection
from oncekey.integrations.django.rest import finished, was_refused


class IdempotentMixin:
    """Put it first: `class Orders(IdempotentMixin, ModelViewSet)`.

    `idempotency` holds the options of `@idempotent`. Authentication, permissions and throttles
    come before the key: whoever has lost access gets a 401 or 403, never a stored answer.
    """

    idempotency: ClassVar[Mapping[str, Any]] = {}
    _protection: ClassVar[Protection]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._protection = Protection(**cls.idempotency)
        at = cls.__mro__.index(IdempotentMixin)
        before, after = cls.__mro__[1:at], cls.__mro__[at + 1 :]
        if _has_view(before) and not _has_view(after):
            raise ConfigurationError(
                f"{cls.__name__}: IdempotentMixin must come before the view it protects, as in "
                f"class {cls.__name__}(IdempotentMixin, ...)"
            )

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        handler: Any = super()
        if hasattr(handler, "initial"):
            return self._dispatch_rest(handler.dispatch, request, *args, **kwargs)
        call = self._protection.call
        if getattr(self, "view_is_async", False):
            self._protection.check_async()
            call = self._protection.acall
        return call(request, lambda: handler.dispatch(request, *args, **kwargs))

    def _dispatch_rest(self, dispatch: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Whatever authenticates may read the body; it is read here first, for all of them."""
        refused = self._protection.prepare(request)
        if refused is not None:
            return django_response(refused)
        response = None
        try:
            response = dispatch(request, *args, **kwargs)
            return response
        finally:
            forget_body(request, response)

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        """Authenticate, permit, throttle; REST framework looks the handler up after that."""
        super().initial(request, *args, **kwargs)  # type: ignore[misc]
        name = request.method.lower()
        handler = getattr(self, name, None)
        if handler is not None:
            setattr(self, name, partial(self._protected, handler))

    def _protected(self, handler: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        return self._protection.call(
            request, lambda: finished(self, request, lambda: handler(request, *args, **kwargs))
        )

    def handle_exception(self, exc: Exception) -> Any:
        if was_refused(exc):
            raise exc
        return super().handle_exception(exc)  # type: ignore[misc]


def _has_view(classes: tuple[type, ...]) -> bool:
    return any("dispatch" in vars(each) for each in classes)
