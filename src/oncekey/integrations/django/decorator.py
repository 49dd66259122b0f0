"""`@idempotent`: a view whose requests with an `Idempotency-Key` are safe to retry."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, overload

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest

from oncekey.core.errors import ConfigurationError
from oncekey.integrations.django.protection import Protection
from oncekey.integrations.django.rest import finished, view_of

V = TypeVar("V", bound=Callable[..., Any])


@overload
def idempotent(view: V) -> V: ...


@overload
def idempotent(*, atomic: bool = False, **options: Any) -> Callable[[V], V]: ...


def idempotent(view: Any = None, **options: Any) -> Any:
    """Decorate a view: `@idempotent`, or with options, `@idempotent(required=True, atomic=True)`.

    Takes functions, methods of class-based views and, through `method_decorator`, whole classes;
    sync or async. Options are `atomic` and those of `oncekey.Rule`.
    """
    protection = Protection(**options)
    return _protected(view, protection) if view else lambda given: _protected(given, protection)


def _protected(view: Any, protection: Protection) -> Any:
    @wraps(view)
    def blocking(*args: Any, **kwargs: Any) -> Any:
        request = _request_in(args)
        return protection.call(request, lambda: _called(view, request, args, kwargs))

    @wraps(view)
    async def awaiting(*args: Any, **kwargs: Any) -> Any:
        return await protection.acall(_request_in(args), lambda: view(*args, **kwargs))

    if _is_async(view):
        protection.check_async()
    wrapper: Any = awaiting if _is_async(view) else blocking
    wrapper.oncekey_protected = True
    return wrapper


def _called(view: Any, request: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    framework_view = view_of(request)
    if framework_view is None:
        return view(*args, **kwargs)
    return finished(framework_view, request, lambda: view(*args, **kwargs))


def _request_in(args: tuple[Any, ...]) -> Any:
    """The request is the first argument of a function and the second of a method."""
    for each in args[:2]:
        if isinstance(each, HttpRequest) or hasattr(each, "_request"):
            return each
    raise ConfigurationError("@idempotent is for views: functions or methods that take a request")


def _is_async(view: Any) -> bool:
    # `dispatch` of a class-based view is a plain function that answers a coroutine.
    instance = getattr(getattr(view, "func", view), "__self__", None)
    return iscoroutinefunction(view) or bool(getattr(instance, "view_is_async", False))
