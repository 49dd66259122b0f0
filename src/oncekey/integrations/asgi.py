"""ASGI: the middleware for Starlette, FastAPI and any other app. Pure ASGI, no task per request."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from oncekey.core.ledger import Ledger
from oncekey.integrations.collector import Collector
from oncekey.wire.body import Body
from oncekey.wire.exchange import Request
from oncekey.wire.headers import KEY, REQUEST_ID, key_in
from oncekey.wire.identity import Identity, namespace_for, namespace_of_credentials
from oncekey.wire.problem import Response, problem
from oncekey.wire.route import Route, Routes
from oncekey.wire.rule import Rule, rule_of

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
IdentityOf = Callable[[Scope], Any]


class IdempotencyMiddleware:
    """Makes every unsafe request with an `Idempotency-Key` safe to retry.

    `routes` gives paths rules of their own; `options` are those of `Rule` and hold elsewhere.
    `identity` answers whose request it is; without it, callers are told apart by credentials.
    """

    def __init__(
        self,
        app: App,
        *,
        ledger: Ledger,
        routes: Iterable[Route] = (),
        identity: IdentityOf | None = None,
        policy: Rule | None = None,
        **options: Any,
    ) -> None:
        self.app = app
        self._ledger = ledger
        self._routes = Routes(routes, rule_of(policy, **options))
        self._identity = identity

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        rule, endpoint = self._routes.find(scope["method"], scope["path"])
        await Protection(self.app, self._ledger, rule, endpoint, self._identity)(
            scope, receive, send
        )


class Protection:
    """One app under one rule."""

    __slots__ = ("_app", "_endpoint", "_identity", "_ledger", "_rule")

    def __init__(
        self, app: App, ledger: Ledger, rule: Rule, endpoint: str, identity: IdentityOf | None
    ) -> None:
        self._app = app
        self._ledger = ledger
        self._rule = rule
        self._endpoint = endpoint
        self._identity = identity

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        rule = self._rule
        if scope["method"] not in rule.methods:
            await self._app(scope, receive, send)
            return
        headers = scope["headers"]
        key = key_in([value for name, value in headers if name == KEY], rule)
        if key is None:
            await self._app(scope, receive, send)
        elif isinstance(key, str):
            await self._protect(scope, receive, send, key)
        else:
            await respond(send, key)

    async def _protect(self, scope: Scope, receive: Receive, send: Send, key: str) -> None:
        request = _request_of(scope, key)
        body = Body(request.content_type, self._rule.max_request_body)
        try:
            refused = await _read(receive, body)
            if refused is None:
                namespace = await self._namespace(scope)
                collector = Collector(self._ledger, self._rule, self._app, scope, send)
                await collector.run(request, body, namespace, self._endpoint)
            elif refused.status:
                await respond(send, refused)
        finally:
            body.close()

    async def _namespace(self, scope: Scope) -> str:
        if self._identity is not None:
            identity: Identity | str | None = self._identity(scope)
            if inspect.isawaitable(identity):
                identity = await identity
            if identity is not None:
                return namespace_for(identity)
        return namespace_of_credentials(scope["headers"])


_GONE = Response(0, (), b"")


async def _read(receive: Receive, body: Body) -> Response | None:
    """Read the body whole; answers why not, when it cannot be."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return _GONE
        if not body.feed(message.get("body", b"")):
            return problem("request-too-large")
        if not message.get("more_body", False):
            return None


async def respond(send: Send, response: Response) -> None:
    status, headers, body = response
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})


def _request_of(scope: Scope, key: str) -> Request:
    content_type = request_id = b""
    for name, value in scope["headers"]:
        if name == b"content-type":
            content_type = value
        elif name == REQUEST_ID:
            request_id = value
    path = scope.get("raw_path") or scope["path"].encode()
    return Request(
        scope["method"], path, scope.get("query_string", b""), content_type, request_id, key
    )
