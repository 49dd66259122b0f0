"""ASGI: the middleware for Starlette, FastAPI and any other app. Pure ASGI, no task per request."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, NamedTuple

from oncekey.core.decision import Proceed, Replay
from oncekey.core.errors import LedgerClosed, StoreError
from oncekey.core.ledger import Ledger
from oncekey.core.model import Operation, Ref, make
from oncekey.core.scope import Scope as KeyScope
from oncekey.integrations.collector import Collector
from oncekey.integrations.receiver import Receiver
from oncekey.integrations.watching import Request
from oncekey.wire.body import Body
from oncekey.wire.exchange import Request as Asked
from oncekey.wire.exchange import operation_of, response_of
from oncekey.wire.headers import Lines, key_in, lines_of
from oncekey.wire.identity import namespace_for, namespace_of_credentials
from oncekey.wire.memo import LONGEST_BODY, Memo, Remembered
from oncekey.wire.problem import Response, problem, problem_of
from oncekey.wire.route import Route, Routes
from oncekey.wire.rule import Rule, rule_of

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
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
            rule, endpoint, place = self._routes.find(scope["method"], scope["path"])
            await self._protection(scope, receive, send, rule, endpoint, place)
        else:
            await self.app(scope, receive, send)


class Keyed(NamedTuple):
    """A request under a rule, and what was found of its key."""

    rule: Rule
    endpoint: str
    lines: Lines
    key: str | Response | None
    request: Request


class Protection:
    """An app behind the ledger; rule and endpoint come with each request."""

    def __init__(self, app: App, ledger: Ledger, identity: IdentityOf | None = None) -> None:
        self._app = app
        self._ledger = ledger
        self._identity = identity
        self._memo = Memo()

    def __call__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        rule: Rule,
        endpoint: str,
        place: str = "",
    ) -> Awaitable[None]:
        """What to await: the app itself when there is nothing to protect. `place` is the endpoint
        for those who count, where that is another."""
        if scope["method"] not in rule.methods:
            return self._app(scope, receive, send)
        lines = lines_of(scope["headers"])
        key = key_in(lines.keys, rule)
        ledger = self._ledger
        request = Request(ledger.watch, ledger.observe, scope, place or endpoint, rule)
        request.has(key, lines, rule, known=self._identity is None)
        keyed = make(Keyed, (rule, endpoint, lines, key, request))
        if ledger.watch is not None:
            return self._watched(scope, receive, send, keyed)
        return self._answer(scope, receive, send, keyed)

    async def _watched(self, scope: Scope, receive: Receive, send: Send, keyed: Keyed) -> None:
        request = keyed.request
        try:
            await self._answer(scope, receive, request.sending(send), keyed)
        except BaseException:
            request.fail()
            raise
        request.end(request.status)

    def _answer(self, scope: Scope, receive: Receive, send: Send, keyed: Keyed) -> Awaitable[None]:
        if keyed.key is None:
            return self._app(scope, receive, send)
        if isinstance(keyed.key, Response):
            return respond(send, keyed.key)
        return self._protect(scope, receive, send, keyed, keyed.key)

    async def _protect(
        self, scope: Scope, receive: Receive, send: Send, keyed: Keyed, key: str
    ) -> None:
        rule, endpoint, lines, _, seen = keyed
        message = await receive()
        body: bytes | Body | Response | None = message.get("body")
        # Nearly every body comes in one piece.
        if body is None or message.get("more_body", False) or len(body) > rule.most_in_memory:
            body = await read(message, receive, lines.content_type, rule.max_request_body)
            if isinstance(body, Response):
                seen.refuse()
                await respond(send, body)
                return
        if self._identity is None:
            namespace = namespace_of_credentials(lines.credentials)
        else:
            namespace = await self._namespace(self._identity, scope, lines)
        path = scope.get("raw_path") or scope["path"].encode()
        query = scope.get("query_string", b"")
        asked = (scope["method"], path, query, lines.content_type, body)
        seen.is_of(namespace, key)
        known = self._memo.get((namespace, endpoint, key, asked))
        if known is not None and self._ledger.remembers(known.digest, known.record):
            seen.replays(namespace, known.record, known.response.status)
            await respond(send, known.response)
            return
        request, whose = make(Asked, asked), make(KeyScope, (namespace, endpoint))
        operation = operation_of(request, key, rule, whose, lines.request_id)
        try:
            await self._decide(scope, receive, send, keyed, operation, request)
        finally:
            if type(body) is Body:
                body.close()

    async def _decide(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        keyed: Keyed,
        operation: Operation,
        request: Asked,
    ) -> None:
        ledger, rule, seen = self._ledger, keyed.rule, keyed.request
        try:
            decision = await ledger.abegin(
                operation, wait=rule.wait, recover=rule.recover, seen=seen.seen
            )
        except (StoreError, LedgerClosed) as error:
            if rule.fail_open and isinstance(error, StoreError):
                seen.pass_unprotected(operation.ref.scope.namespace)
                receiver = Receiver(request.body, receive)
                receiver.let_through()
                await self._app(scope, receiver, send)
            else:
                await respond(send, problem_of(error))
            return
        if isinstance(decision, Proceed):
            collector = Collector(ledger, rule, decision.claim, send)
            with seen.handling():
                await collector.run(self._app, scope, Receiver(request.body, receive))
            return
        if isinstance(decision, Replay) and len(request.body) <= LONGEST_BODY:
            await respond(send, self._remembered(operation.ref, request, decision))
        else:
            await respond(send, response_of(decision))

    def _remembered(self, ref: Ref, request: Asked, replay: Replay) -> Response:
        asked = (*ref.scope, ref.key, request)
        known = self._memo.get(asked)
        if known is None or known.record is not replay.record:
            known = Remembered(ref.digest, replay.record, response_of(replay))
            self._memo.put(asked, known)
        return known.response

    async def _namespace(self, identity_of: IdentityOf, scope: Scope, lines: Lines) -> str:
        identity = identity_of(scope)
        if inspect.isawaitable(identity):
            identity = await identity
        if not identity:
            return namespace_of_credentials(lines.credentials)
        return namespace_for(identity)


async def read(
    message: Message, receive: Receive, content_type: bytes, limit: int
) -> Body | Response:
    """A body in several pieces, from its first message; a refusal when it cannot be had whole."""
    body = Body(content_type, limit)
    refusal = "request-incomplete"
    while message["type"] != "http.disconnect":
        if not body.feed(message.get("body", b"")):
            refusal = "request-too-large"
            break
        if not message.get("more_body", False):
            return body
        message = await receive()
    body.close()
    return problem(refusal)


async def respond(send: Send, response: Response) -> None:
    status, headers, body = response
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})
