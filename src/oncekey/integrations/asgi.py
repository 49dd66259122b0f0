"""ASGI: the middleware for Starlette, FastAPI and any other app. Pure ASGI, no task per request."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from oncekey.core.decision import Proceed, Replay
from oncekey.core.errors import OnceKeyError, StoreError
from oncekey.core.ledger import Ledger
from oncekey.core.model import Operation
from oncekey.core.scope import Scope as KeyScope
from oncekey.integrations.collector import Collector
from oncekey.integrations.receiver import Receiver
from oncekey.wire.body import MEMORY_LIMIT, Body
from oncekey.wire.exchange import Request, operation_of, response_of
from oncekey.wire.headers import Lines, key_in, lines_of
from oncekey.wire.identity import namespace_for, namespace_of_credentials
from oncekey.wire.memo import LONGEST_BODY, Memo, Remembered
from oncekey.wire.problem import Response, problem, problem_of
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
        self._routes = Routes(routes, rule_of(policy, **options))
        self._protection = Protection(app, ledger, identity)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            rule, endpoint = self._routes.find(scope["method"], scope["path"])
            await self._protection(scope, receive, send, rule, endpoint)
        else:
            await self.app(scope, receive, send)


class Protection:
    """An app behind the ledger; rule and endpoint come with each request."""

    def __init__(self, app: App, ledger: Ledger, identity: IdentityOf | None = None) -> None:
        self._app = app
        self._ledger = ledger
        self._identity = identity
        self._memo = Memo()

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send, rule: Rule, endpoint: str
    ) -> None:
        if scope["method"] in rule.methods:
            lines = lines_of(scope["headers"])
            key = key_in(lines.keys, rule)
            if isinstance(key, str):
                await self._protect(scope, receive, send, rule, endpoint, lines, key)
                return
            if key is not None:
                await respond(send, key)
                return
        await self._app(scope, receive, send)

    async def _protect(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        rule: Rule,
        endpoint: str,
        lines: Lines,
        key: str,
    ) -> None:
        body = await read(receive, lines.content_type, rule.max_request_body)
        if isinstance(body, Response):
            await respond(send, body)
            return
        if body is None:
            return
        whose = KeyScope(await self._namespace(scope, lines), endpoint)
        path = scope.get("raw_path") or scope["path"].encode()
        query = scope.get("query_string", b"")
        request = Request(scope["method"], path, query, lines.content_type, body)
        known = self._memo.get((whose, key, request))
        if known is not None and self._ledger.remembers(known.digest, known.record):
            await respond(send, known.response)
            return
        operation = operation_of(request, key, rule, whose, lines.request_id)
        try:
            await self._decide(scope, send, rule, operation, request)
        finally:
            if type(body) is Body:
                body.close()

    async def _decide(
        self, scope: Scope, send: Send, rule: Rule, operation: Operation, request: Request
    ) -> None:
        ledger = self._ledger
        try:
            decision = await ledger.abegin(operation, wait=rule.wait, recover=rule.recover)
        except OnceKeyError as error:
            if rule.fail_open and isinstance(error, StoreError):
                ledger.observe("unprotected", operation.ref.scope.endpoint)
                await self._app(scope, Receiver(request.body), send)
            else:
                await respond(send, problem_of(error))
            return
        if isinstance(decision, Proceed):
            collector = Collector(ledger, rule, decision.claim, send)
            await collector.run(self._app, scope, request.body)
            return
        response = response_of(decision)
        if isinstance(decision, Replay) and len(request.body) <= LONGEST_BODY:
            ref = operation.ref
            known = Remembered(ref.digest, decision.record, response)
            self._memo.put((ref.scope, ref.key, request), known)
        await respond(send, response)

    async def _namespace(self, scope: Scope, lines: Lines) -> str:
        if self._identity is not None:
            identity = self._identity(scope)
            if inspect.isawaitable(identity):
                identity = await identity
            if identity is not None:
                return namespace_for(identity)
        return namespace_of_credentials(lines.credentials)


async def read(receive: Receive, content_type: bytes, limit: int) -> bytes | Body | Response | None:
    """The body whole; a refusal when it is too large, nothing when the client went away."""
    message = await receive()
    chunk: bytes = message.get("body", b"")
    if not message.get("more_body", False) and len(chunk) <= min(limit, MEMORY_LIMIT):
        # Nearly every body comes in one piece.
        return None if message["type"] == "http.disconnect" else chunk
    body = Body(content_type, limit)
    while message["type"] != "http.disconnect":
        if not body.feed(message.get("body", b"")):
            body.close()
            return problem("request-too-large")
        if not message.get("more_body", False):
            return body
        message = await receive()
    body.close()
    return None


async def respond(send: Send, response: Response) -> None:
    status, headers, body = response
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})
