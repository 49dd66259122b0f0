"""One Flask request under the ledger: begun where its view is called, concluded after all hooks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from flask import Flask, Request, current_app, request, session
from flask import Response as FlaskResponse

from oncekey.core.current import within
from oncekey.core.decision import Proceed, Replay
from oncekey.core.errors import ConfigurationError, LedgerClosed, StoreError, TerminalError
from oncekey.core.scope import Scope
from oncekey.integrations.environ import CLAIM, lines_in, read, request_in
from oncekey.integrations.gatherer import Flow, Gatherer
from oncekey.integrations.mark import Terms
from oncekey.integrations.responder import close_behind, decoded, encoded
from oncekey.integrations.watching import Request as Watched
from oncekey.wire.body import Body
from oncekey.wire.exchange import endpoint_of, operation_of, response_of
from oncekey.wire.headers import Lines, key_in
from oncekey.wire.identity import Identity, namespace_for, namespace_of_credentials
from oncekey.wire.problem import Response, problem_of
from oncekey.wire.rule import Rule

IdentityOf = Callable[[Request], Identity | str | None]

_BODY = "oncekey.body"
_EXCHANGE = "oncekey.exchange"
_SEEN = "oncekey.protected"
_WATCHED = "oncekey.watched"
# Where Flask-Login and Flask's own tutorial keep whose session it is.
_SESSION_USERS = ("_user_id", "user_id")


class Exchange:
    """A claim whose view has run or is running, until the response is final."""

    def __init__(self, gatherer: Gatherer, body: Body) -> None:
        self._gatherer = gatherer
        self._body = body
        self.flows = False
        """Whether the answer outlives the request, and the body with it."""

    def run(self, view: Callable[[], Any]) -> Any:
        try:
            return view()
        except TerminalError as error:
            if self._gatherer.concluded:
                raise
            self._gatherer.fail(error)
            assert self._gatherer.replacement is not None
            return response_for(self._gatherer.replacement)

    def conclude(self, response: FlaskResponse) -> FlaskResponse:
        """Store the response, then let it go; or give the one to send in its place."""
        gatherer = self._gatherer
        if gatherer.replacement is None:
            with within(gatherer.claim):
                self._gather(response)
        if gatherer.replacement is not None:
            response.close()
            return response_for(gatherer.replacement)
        response.headers.extend(decoded(gatherer.marks))
        return response

    def _gather(self, response: FlaskResponse) -> None:
        gatherer = self._gatherer
        gatherer.start(response.status_code, encoded(response.headers.to_wsgi_list()))
        if response.is_sequence:
            gatherer.expect_whole()
        source, chunks = response.response, iter(response.iter_encoded())
        first = b""
        for chunk in chunks:
            first = gatherer.feed(chunk)
            if gatherer.leaving or gatherer.replacement is not None:
                break
        else:
            first = gatherer.finish()
        if gatherer.leaving:
            self.flows = True
            response.response = Flow(
                first, chunks, gatherer, lambda: close_behind(source, self._body)
            )
        elif not response.is_sequence and gatherer.replacement is None:
            response.response = [first]
            response.call_on_close(getattr(source, "close", lambda: None))
        response.direct_passthrough = False

    def end(self, error: BaseException | None) -> None:
        """The request is over. A claim that nobody concluded is given back, as after a failure."""
        if self.flows:
            return
        if error is None:
            self._gatherer.let_go()
        else:
            self._gatherer.give_up(error)


class Replayed:
    """A stored answer that hooks may look at, but not change."""

    flows = False

    def __init__(self, answer: Response) -> None:
        self._answer = answer

    def conclude(self, response: FlaskResponse) -> FlaskResponse:
        response.close()
        return response_for(self._answer)

    def end(self, error: BaseException | None) -> None:
        """Nothing is held."""


def protect(terms: Terms, view: Callable[[], Any]) -> Any:
    """Call the view once for its key; without a key, just call it."""
    environ = request.environ
    if _SEEN in environ or CLAIM in environ:
        return view()
    environ[_SEEN] = True
    if request.method not in terms.rule.methods:
        return view()
    lines, ledger = lines_in(environ), terms.ledger
    key = key_in(lines.keys, terms.rule)
    watched = Watched(ledger.watch, ledger.observe, environ, _endpoint(), terms.rule)
    watched.has(key, lines, terms.rule, known=terms.identity is None)
    environ[_WATCHED] = watched
    if key is None:
        return view()
    return _begin(terms, view, lines, key, watched) if isinstance(key, str) else response_for(key)


def _begin(terms: Terms, view: Callable[[], Any], lines: Lines, key: str, watched: Watched) -> Any:
    environ, ledger, rule = request.environ, terms.ledger, terms.rule
    body = body_of(lines, rule)
    if not isinstance(body, Body):
        watched.refuse()
        return response_for(body)
    whose = Scope(_namespace(terms, lines), _endpoint())
    watched.is_of(whose.namespace, key)
    what = request_in(environ, lines.content_type, body)
    operation = operation_of(what, key, rule, whose, lines.request_id)
    try:
        decision = ledger.begin(operation, wait=rule.wait, recover=rule.recover, seen=watched.seen)
    except (StoreError, LedgerClosed) as error:
        if rule.fail_open and isinstance(error, StoreError):
            watched.pass_unprotected(whose.namespace)
            return view()
        return response_for(problem_of(error))
    if isinstance(decision, Proceed):
        exchange = Exchange(Gatherer(ledger, rule, decision.claim), body)
        environ[_EXCHANGE] = exchange
        environ[CLAIM] = decision.claim
        with watched.handling(), within(decision.claim):
            return exchange.run(view)
    answer = response_of(decision)
    if isinstance(decision, Replay):
        environ[_EXCHANGE] = Replayed(answer)
    return response_for(answer)


def body_of(lines: Lines, rule: Rule) -> Body | Response:
    """The request's body, read before anything else reads it."""
    environ = request.environ
    if _BODY not in environ:
        limit = min(rule.max_request_body, request.max_content_length or rule.max_request_body)
        if "stream" in vars(request) or "form" in vars(request):
            environ[_BODY] = _body_read_already(lines, limit)
        else:
            environ[_BODY] = read(environ, lines.content_type, limit)
    body: Body | Response = environ[_BODY]
    return body


def _body_read_already(lines: Lines, limit: int) -> Body:
    data = request.get_data()
    if len(data) != (request.content_length or len(data)) or (not data and request.form):
        raise ConfigurationError(
            "the request's form was read before its view was called, so that it cannot be compared "
            "with that of a retry; install the extension: Idempotency(app, ledger=...)"
        )
    body = Body(lines.content_type, max(limit, len(data)))
    body.feed(data)
    return body


def _endpoint() -> str:
    assert request.url_rule is not None
    return endpoint_of(request.method, request.script_root + request.url_rule.rule)


def _namespace(terms: Terms, lines: Lines) -> str:
    identity = terms.identity(request) if terms.identity is not None else _session_user()
    if identity:
        return namespace_for(identity)
    return namespace_of_credentials(lines.credentials)


def _session_user() -> str | None:
    """Flask writes a session anew when anything in it changes, but whose it is stays the same."""
    if "HTTP_COOKIE" not in request.environ:
        return None
    if current_app.session_interface.get_cookie_name(current_app) not in request.cookies:
        return None
    found = [str(session[name]) for name in _SESSION_USERS if session.get(name) is not None]
    return f"user:{found[0]}" if found else None


def response_for(answer: Response) -> FlaskResponse:
    response: FlaskResponse = current_app.response_class(answer.body, answer.status)
    response.headers.clear()
    response.headers.extend(decoded(answer.headers))
    # What was stored is sent as it is: an answer that had no length then has none now.
    response.automatically_set_content_length = False
    return response


# -- hooks ---------------------------------------------------------------------------------

_hooking = threading.Lock()


def install_hooks(app: Flask) -> None:
    """Conclude after every other hook, let go when a request fails. Once per app, at any time."""
    with _hooking:
        if _conclude in app.after_request_funcs[None]:
            return
        # Flask calls these from last to first. Requests that run now keep the list they began with.
        app.after_request_funcs[None] = [_conclude, *app.after_request_funcs[None]]
        app.teardown_request_funcs[None] = [_end, *app.teardown_request_funcs[None]]


def _conclude(response: FlaskResponse) -> FlaskResponse:
    exchange: Exchange | Replayed | None = request.environ.get(_EXCHANGE)
    answer = response if exchange is None else exchange.conclude(response)
    watched: Watched | None = request.environ.pop(_WATCHED, None)
    if watched is not None:
        watched.end(answer.status_code)
    return answer


def _end(error: BaseException | None) -> None:
    exchange: Exchange | Replayed | None = request.environ.pop(_EXCHANGE, None)
    body: Body | Response | None = request.environ.pop(_BODY, None)
    watched: Watched | None = request.environ.pop(_WATCHED, None)
    if watched is not None:
        watched.fail()
    if exchange is not None:
        exchange.end(error)
    if isinstance(body, Body) and not (exchange is not None and exchange.flows):
        body.close()
