"""FastAPI: a decorator for single routes, and what an app says for all of them."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, overload

from fastapi import FastAPI, Request, routing
from starlette.requests import HTTPConnection

from oncekey.core.errors import ConfigurationError
from oncekey.core.ledger import Ledger
from oncekey.integrations.asgi import App, Receive, Scope, Send
from oncekey.integrations.fastapi_route import (
    INSTALLED,
    PROTECTED,
    AskedSignature,
    document,
    mark_of,
)
from oncekey.integrations.mark import Mark, Terms
from oncekey.wire.rule import Rule, rule_of

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
IdentityOf = Callable[[Request], Any]

_CONNECTION = "oncekey_connection"


@overload
def idempotent(endpoint: Endpoint, /) -> Endpoint: ...


@overload
def idempotent(
    *, ledger: Ledger | None = None, identity: IdentityOf | None = None, **options: Any
) -> Callable[[Endpoint], Endpoint]: ...


def idempotent(
    endpoint: Endpoint | None = None,
    /,
    *,
    ledger: Ledger | None = None,
    identity: IdentityOf | None = None,
    **options: Any,
) -> Any:
    """Protect a route: `@idempotent(ledger=ledger, required=True)` under `@app.post(...)`.

    Options are those of `Rule`. Without a `ledger`, the one of `Idempotency(app, ...)` is used;
    with neither, requests fail and the endpoint is not called. `identity(request)` answers whose
    request it is, without it callers are told apart by credentials.
    """
    mark = Mark(ledger, identity, options)

    def decorate(endpoint: Endpoint) -> Endpoint:
        guarded = _guarded(endpoint)
        signature = _with_connection(_signature_of(endpoint))
        asked = AskedSignature.of(signature, guarded, mark)
        guarded.__signature__ = asked  # type: ignore[attr-defined]
        return guarded  # type: ignore[return-value]

    return decorate if endpoint is None else decorate(endpoint)


class Idempotency:
    """The ledger, and the options of `Rule`, for every route of an app under `@idempotent`.

    Holds for included routers and mounted apps, and for routes that are added later.
    """

    def __init__(
        self,
        app: FastAPI,
        *,
        ledger: Ledger,
        identity: IdentityOf | None = None,
        policy: Rule | None = None,
        **options: Any,
    ) -> None:
        self._app = app
        self._terms = Terms(ledger, rule_of(policy, **options), identity)
        self._describe = app.openapi
        app.add_middleware(Install, terms=self._terms)
        app.openapi = self._openapi  # type: ignore[method-assign]

    def _openapi(self) -> dict[str, Any]:
        for _, route, mark in _marked_routes(self._app):
            document(route, mark.rule_under(self._terms))
        return self._describe()


class Install:
    """Tells every route below what the app says."""

    def __init__(self, app: App, terms: Terms) -> None:
        self._app = app
        self._terms = terms

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[INSTALLED] = self._terms
        await self._app(scope, receive, send)


def check(app: FastAPI) -> None:
    """Raises `ConfigurationError` when a marked route has no ledger. For start-up and tests."""
    installed: list[Any] = [each.cls for each in app.user_middleware]
    if Install in installed:
        return
    bare = [where for where, _, mark in _marked_routes(app) if mark.ledger is None]
    if bare:
        raise ConfigurationError(
            f"marked @idempotent, but without a ledger: {', '.join(sorted(bare))}; "
            "install Idempotency(app, ledger=...) or write @idempotent(ledger=...)"
        )


def _marked_routes(app: Any) -> Iterator[tuple[str, routing.APIRoute, Mark]]:
    routes = getattr(app, "routes", ())
    # Newer releases keep included routers apart; older ones copy their routes.
    contexts = getattr(routing, "iter_route_contexts", iter)
    for context in contexts(routes):
        route = getattr(context, "original_route", context)
        mark = mark_of(route)
        if isinstance(route, routing.Mount):
            yield from _marked_routes(route.app)
        elif mark is not None:
            methods = ",".join(sorted(route.methods or ()))
            yield f"{methods} {context.path_format}", route, mark


# -- the endpoint --------------------------------------------------------------------------


def _guarded(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """The endpoint, refusing requests that reach it on any other way than through the ledger."""
    if inspect.iscoroutinefunction(endpoint):

        @functools.wraps(endpoint)
        async def guarded_async(*args: Any, **kwargs: Any) -> Any:
            _check_protected(endpoint, args, kwargs)
            return await endpoint(*args, **kwargs)

        return guarded_async

    @functools.wraps(endpoint)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        _check_protected(endpoint, args, kwargs)
        return endpoint(*args, **kwargs)

    return guarded


def _check_protected(
    endpoint: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Calls from code carry no request and are the caller's business."""
    for value in (*args, kwargs.pop(_CONNECTION, None), *kwargs.values()):
        if isinstance(value, HTTPConnection) and PROTECTED not in value.scope:
            raise ConfigurationError(
                f"{endpoint.__qualname__} is marked @idempotent, but was reached by a route that "
                "FastAPI did not build for it; add it with @app.post(...) or @router.post(...)"
            )


def _signature_of(endpoint: Callable[..., Any]) -> inspect.Signature:
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(endpoint, annotation_format=Format.FORWARDREF)
    return inspect.signature(endpoint)


def _with_connection(signature: inspect.Signature) -> inspect.Signature:
    """One more parameter, for the request. FastAPI gives one of each kind; this kind is rare."""
    parameters = list(signature.parameters.values())
    if any(each.annotation is HTTPConnection for each in parameters):
        return signature
    kind = inspect.Parameter.KEYWORD_ONLY
    connection = inspect.Parameter(_CONNECTION, kind, annotation=HTTPConnection)
    rest = [each for each in parameters if each.kind is each.VAR_KEYWORD]
    return signature.replace(
        parameters=[*parameters[: len(parameters) - len(rest)], connection, *rest]
    )
