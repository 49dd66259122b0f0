"""FastAPI routes under the ledger. A route is adopted while FastAPI builds it, so that what is
stored is what its whole pipeline answers: validation, dependencies, serialization."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import Request
from fastapi.datastructures import DefaultPlaceholder
from fastapi.routing import APIRoute, request_response

from oncekey.integrations.asgi import App, Protection, Receive, Scope, Send
from oncekey.integrations.mark import Mark, Terms
from oncekey.wire.exchange import endpoint_of
from oncekey.wire.openapi import operation_parts
from oncekey.wire.rule import Rule

CLAIM = "oncekey.claim"
PROTECTED = "oncekey.protected"
INSTALLED = "oncekey.installed"
_ADOPTED = "oncekey"
# From a signature to the route that asks for it are half a dozen calls.
_NEARBY = 16


class AskedSignature(inspect.Signature):
    """The signature of a marked endpoint. FastAPI reads the parameters of an endpoint only while
    it builds a route for it: whoever reads these is the route to adopt."""

    __slots__ = ("_endpoint", "_mark")
    _endpoint: Any
    _mark: Mark

    @classmethod
    def of(cls, signature: inspect.Signature, endpoint: Any, mark: Mark) -> AskedSignature:
        parameters = signature.parameters.values()
        asked = cls(list(parameters), return_annotation=signature.return_annotation)
        asked._endpoint = endpoint
        asked._mark = mark
        return asked

    @property
    def parameters(self) -> Any:
        endpoint = getattr(self, "_endpoint", None)
        route = endpoint and _route_being_built(endpoint)
        if route is not None:
            adopt(route, self._mark)
        return super().parameters


def _route_being_built(endpoint: Any) -> APIRoute | None:
    frame = inspect.currentframe()
    for _ in range(_NEARBY):
        frame = frame and frame.f_back
        if frame is None:
            return None
        for value in list(frame.f_locals.values()):
            if issubclass(type(value), APIRoute) and _leads_to(value, endpoint):
                found: APIRoute = value
                return found
    return None


def _leads_to(route: APIRoute, endpoint: Any) -> bool:
    """Whether the route calls the endpoint, perhaps through other decorators."""
    function = vars(route).get("endpoint")
    while function is not None and function is not endpoint:
        function = getattr(function, "__wrapped__", None)
    return function is not None


def mark_of(route: Any) -> Mark | None:
    found: Mark | None = getattr(route, _ADOPTED, None)
    return found


def adopt(route: APIRoute, mark: Mark) -> None:
    """From now on, whatever app FastAPI builds of this route is a protected one."""
    if mark_of(route) is not None:
        return
    build = route.get_route_handler

    def get_route_handler() -> Callable[[Request], Awaitable[Any]]:
        return Gate(route, mark, request_response(build())).admit

    vars(route).update({_ADOPTED: mark, "get_route_handler": get_route_handler})
    document(route, mark.rule)


class Gate:
    """Stands where FastAPI calls a route's handler, before anything of the request is read."""

    def __init__(self, route: APIRoute, mark: Mark, app: Any) -> None:
        self._route = route
        self._mark = mark
        self._app: App = app
        self._known: tuple[Terms, Protection] | None = None

    async def admit(self, request: Request) -> Any:
        """What FastAPI takes for a response: it is called with the request's own channels."""
        return self._dispatch

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = endpoint_of(scope["method"], _template_of(scope, self._route))
        scope[PROTECTED] = True
        if CLAIM in scope:
            # A middleware in front holds a claim for this request.
            await self._app(scope, receive, send)
            return
        terms = self._mark.terms(scope.get(INSTALLED), endpoint)
        await self._protection(terms)(scope, receive, send, terms.rule, endpoint)

    def _protection(self, terms: Terms) -> Protection:
        if self._known is None or self._known[0] is not terms:
            identity = terms.identity
            whose = identity and (lambda scope: identity(Request(scope)))
            self._known = (terms, Protection(self._app, terms.ledger, whose))
        return self._known[1]


def _template_of(scope: Scope, route: APIRoute) -> str:
    """The path as it is declared, with the prefixes of routers and mounts."""
    root: str = scope.get("root_path", "")
    mounted = root.removeprefix(scope.get("app_root_path", root))
    context = scope.get("fastapi", {}).get("effective_route_context")
    included = context is not None and context.original_route is route
    template: str = context.path_format if included else route.path_format
    return mounted + template


# -- the document --------------------------------------------------------------------------


class Extra(dict[str, Any]):
    """A route's `openapi_extra` with our parts; FastAPI hands it on when a router is included."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__(given)
        self.given = given


def document(route: APIRoute, rule: Rule) -> None:
    """Describe the route by its rule. In place: copies of the route share the description."""
    extra = route.openapi_extra
    if not isinstance(extra, Extra):
        route.openapi_extra = extra = Extra(extra or {})
    parts = operation_parts(rule, _success_of(route))
    extra.clear()
    extra.update(_merged(extra.given, parts))


def _merged(given: Mapping[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """`parts`, and over them what the application wrote itself."""
    merged = {**parts, **given}
    for name in given.keys() & parts.keys():
        ours, theirs = parts[name], given[name]
        if isinstance(ours, dict) and isinstance(theirs, dict):
            merged[name] = _merged(theirs, ours)
        elif isinstance(ours, list) and isinstance(theirs, list):
            merged[name] = ours + theirs
    return merged


def _success_of(route: APIRoute) -> str:
    if route.status_code is not None:
        return str(route.status_code)
    given = route.response_class
    response_class = given.value if isinstance(given, DefaultPlaceholder) else given
    status = inspect.signature(response_class.__init__).parameters.get("status_code")
    return str(status.default if status and isinstance(status.default, int) else 200)
