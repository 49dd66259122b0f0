"""One view under one rule: what the decorator, the mixin and the middleware have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oncekey.core.errors import ConfigurationError
from oncekey.core.events import Watch
from oncekey.integrations.django import background
from oncekey.integrations.django.exchange import (
    capture,
    django_response,
    forget_body,
    place_of_request,
)
from oncekey.integrations.django.preferences import Preferences, preferences
from oncekey.integrations.django.settling import Exchange
from oncekey.integrations.django.steps import adrive, drive
from oncekey.integrations.environ import CLAIM, lines_in
from oncekey.integrations.watching import Request as Watched
from oncekey.wire.body import Body
from oncekey.wire.headers import key_in
from oncekey.wire.problem import Response
from oncekey.wire.rule import Rule, rule_of


class Protection:
    """`options` are those of `Rule`, over the project's settings.

    `atomic` runs the view and stores its outcome in one transaction: both happen, or neither.
    """

    def __init__(self, *, atomic: bool = False, **options: Any) -> None:
        # A mistake is told where it is written, not when the first request comes.
        rule_of(None, **options)
        self._atomic = atomic
        self._options = options
        self._known: tuple[Preferences, Rule] | None = None

    @property
    def rule(self) -> Rule:
        chosen = preferences()
        if self._known is None or self._known[0] is not chosen:
            self._known = chosen, rule_of(chosen.rule, **self._options)
        return self._known[1]

    def check_async(self) -> None:
        if self._atomic:
            raise ConfigurationError(
                "Django has no transactions in async code: make the view a plain function, "
                "or leave atomic=True out"
            )

    def call(self, request: Any, view: Callable[[], Any]) -> Any:
        """Call a view that blocks. `request` is Django's or that of REST framework."""
        watched = self._watched(request)
        if watched is None:
            return self._call(request, view, None)
        try:
            response = self._call(request, view, watched)
        except BaseException:
            watched.fail()
            raise
        watched.end(getattr(response, "status_code", None))
        return response

    async def acall(self, request: Any, view: Callable[[], Any]) -> Any:
        """Call a view that is awaited."""
        watched = self._watched(request)
        if watched is None:
            return await self._acall(request, view, None)
        try:
            response = await self._acall(request, view, watched)
        except BaseException:
            watched.fail()
            raise
        watched.end(getattr(response, "status_code", None))
        return response

    def _watched(self, request: Any) -> Watched | None:
        """For those who watch, if there are any."""
        observer, rule = preferences().observer, self.rule
        http = getattr(request, "_request", request)
        if observer is None or request.method not in rule.methods or CLAIM in http.META:
            return None
        watch = observer if isinstance(observer, Watch) else None
        observe = observer if watch is None else watch.observe
        return Watched(watch, observe, http.META, place_of_request(http), rule)

    def _call(self, request: Any, view: Callable[[], Any], watched: Watched | None) -> Any:
        started = self._start(request, watched, blocking=True)
        if started is None:
            return view()
        if not isinstance(started, Exchange):
            return django_response(started)
        response = None
        try:
            response = drive(started.steps(), view)
            return response
        finally:
            forget_body(started.http, response)

    async def _acall(self, request: Any, view: Callable[[], Any], watched: Watched | None) -> Any:
        started = self._start(request, watched, blocking=False)
        if started is None:
            return await view()
        if not isinstance(started, Exchange):
            return django_response(started)
        return await background.finish(_arun(started, view))

    def prepare(self, request: Any) -> Response | None:
        """Read the body of a request with a key before somebody else does; answers why not."""
        rule = self.rule
        if request.method not in rule.methods:
            return None
        if not isinstance(key_in(lines_in(request.META).keys, rule), str):
            return None
        body = capture(request, rule)
        return None if isinstance(body, Body) else body

    def _start(
        self, request: Any, watched: Watched | None, *, blocking: bool
    ) -> Exchange | Response | None:
        """The exchange, the answer that refuses it, or nothing: then the view just runs."""
        rule = self.rule
        http = getattr(request, "_request", request)
        # A request is protected once, by whoever comes first.
        if request.method not in rule.methods or CLAIM in http.META:
            return None
        lines = lines_in(http.META)
        key = key_in(lines.keys, rule)
        if watched is not None:
            watched.has(key, lines, rule, known=preferences().organization is None)
        if not isinstance(key, str):
            return key
        body = capture(http, rule)
        if not isinstance(body, Body):
            if watched is not None:
                watched.refuse()
            return body
        exchange = Exchange(
            request, http, rule, lines, key, body, atomic=self._atomic, blocking=blocking
        )
        exchange.watched = watched
        return exchange


async def _arun(exchange: Exchange, view: Callable[[], Any]) -> Any:
    response = None
    try:
        response = await adrive(exchange.steps(), view)
        return response
    finally:
        forget_body(exchange.http, response)
