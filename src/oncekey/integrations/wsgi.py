"""WSGI: the middleware for any app, framework or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from oncekey.core.current import within
from oncekey.core.decision import Proceed
from oncekey.core.errors import LedgerClosed, StoreError
from oncekey.core.ledger import Ledger
from oncekey.core.model import Operation
from oncekey.core.scope import Scope
from oncekey.integrations.environ import CLAIM, Environ, lines_in, path_in, read, request_in
from oncekey.integrations.gatherer import Gatherer
from oncekey.integrations.responder import (
    Closing,
    Responder,
    StartResponse,
    Whole,
    WsgiApp,
    respond,
)
from oncekey.integrations.watching import Request
from oncekey.wire.body import Body
from oncekey.wire.exchange import operation_of, response_of
from oncekey.wire.headers import Lines, key_in
from oncekey.wire.identity import Identity, namespace_for, namespace_of_credentials
from oncekey.wire.problem import problem_of
from oncekey.wire.route import Route, Routes
from oncekey.wire.rule import Rule, rule_of

IdentityOf = Callable[[Environ], Identity | str | None]


class IdempotencyMiddleware:
    """Makes every unsafe request with an `Idempotency-Key` safe to retry.

    `routes` gives paths rules of their own; `options` are those of `Rule` and hold elsewhere.
    `identity` answers whose request it is; without it, callers are told apart by credentials.
    """

    def __init__(
        self,
        app: WsgiApp,
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

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        path = path_in(environ).decode(errors="replace")
        rule, endpoint, place = self._routes.find(environ["REQUEST_METHOD"], path)
        return self._protection(environ, start_response, rule, endpoint, place)


class Keyed(NamedTuple):
    """A request that carries a key, and the rule it falls under."""

    environ: Environ
    rule: Rule
    endpoint: str
    lines: Lines
    key: str
    request: Request


class Protection:
    """An app behind the ledger; rule and endpoint come with each request."""

    def __init__(self, app: WsgiApp, ledger: Ledger, identity: IdentityOf | None = None) -> None:
        self._app = app
        self._ledger = ledger
        self._identity = identity

    def __call__(
        self,
        environ: Environ,
        start_response: StartResponse,
        rule: Rule,
        endpoint: str,
        place: str = "",
    ) -> Iterable[bytes]:
        """`place` is the endpoint for those who count, where that is another."""
        if environ["REQUEST_METHOD"] not in rule.methods:
            return self._app(environ, start_response)
        lines = lines_in(environ)
        key = key_in(lines.keys, rule)
        ledger = self._ledger
        request = Request(ledger.watch, ledger.observe, environ, place or endpoint, rule)
        request.has(key, lines, rule, known=self._identity is None)
        start = request.starting(start_response)
        try:
            if isinstance(key, str):
                answer = self._protect(Keyed(environ, rule, endpoint, lines, key, request), start)
            elif key is not None:
                answer = respond(start, key)
            else:
                answer = self._app(environ, start)
        except BaseException:
            request.fail()
            raise
        return request.ending(answer, environ.get("wsgi.file_wrapper"))

    def _protect(self, keyed: Keyed, start_response: StartResponse) -> Iterable[bytes]:
        environ, rule, endpoint, lines, key, seen = keyed
        body = read(environ, lines.content_type, rule.max_request_body)
        if not isinstance(body, Body):
            seen.refuse()
            return respond(start_response, body)
        try:
            whose = Scope(self._namespace(environ, lines), endpoint)
            seen.is_of(whose.namespace, key)
            request = request_in(environ, lines.content_type, body)
            operation = operation_of(request, key, rule, whose, lines.request_id)
            return self._decide(keyed, operation, body, start_response)
        except BaseException:
            body.close()
            raise

    def _decide(
        self, keyed: Keyed, operation: Operation, body: Body, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Whoever answers closes the body, when its answer is closed."""
        ledger, environ, rule = self._ledger, keyed.environ, keyed.rule
        try:
            seen = keyed.request.seen
            decision = ledger.begin(operation, wait=rule.wait, recover=rule.recover, seen=seen)
        except (StoreError, LedgerClosed) as error:
            if rule.fail_open and isinstance(error, StoreError):
                keyed.request.pass_unprotected(operation.ref.scope.namespace)
                return Closing(self._app(environ, start_response), body)
            return Whole(respond(start_response, problem_of(error)), body.close)
        if isinstance(decision, Proceed):
            environ[CLAIM] = decision.claim
            gatherer = Gatherer(ledger, rule, decision.claim)
            with keyed.request.handling(), within(decision.claim):
                return Responder(gatherer, start_response, body).run(self._app, environ)
        return Whole(respond(start_response, response_of(decision)), body.close)

    def _namespace(self, environ: Environ, lines: Lines) -> str:
        identity = self._identity(environ) if self._identity is not None else None
        if identity:
            return namespace_for(identity)
        return namespace_of_credentials(lines.credentials)
