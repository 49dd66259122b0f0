"""Flask: an extension for the whole app, and a decorator for single views."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast, overload

from flask import Flask, current_app, has_request_context, request

from oncekey.core.errors import ConfigurationError
from oncekey.core.ledger import Ledger
from oncekey.integrations.environ import lines_in
from oncekey.integrations.flask_exchange import IdentityOf, body_of, install_hooks, protect
from oncekey.integrations.mark import Mark, Terms
from oncekey.wire.rule import Rule, rule_of

View = TypeVar("View", bound=Callable[..., Any])

_NAME = "oncekey"
_PREFIX = "ONCEKEY_"
_SETTINGS = {"url", "only_marked", "required", *Rule.__dataclass_fields__}


class Installed(NamedTuple):
    """The extension in one app."""

    terms: Terms
    only_marked: bool


class Idempotency:
    """Makes every unsafe request with an `Idempotency-Key` safe to retry.

    With `only_marked=True`, only the views under `@idempotent` are protected. Other options are
    those of `Rule`; each can also stand in `app.config`, as `ONCEKEY_REQUIRED` and so on. The
    ledger is given, or opened from `ONCEKEY_URL`. `identity(request)` answers whose request it is.
    """

    def __init__(
        self,
        app: Flask | None = None,
        *,
        ledger: Ledger | None = None,
        identity: IdentityOf | None = None,
        policy: Rule | None = None,
        **options: Any,
    ) -> None:
        self._ledger = ledger
        self._identity = identity
        self._policy = policy
        self._options = options
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        if _NAME in app.extensions:
            raise ConfigurationError("Idempotency is installed in this app already")
        options = {**_settings_in(app), **self._options}
        url = options.pop("url", None)
        only_marked = bool(options.pop("only_marked", False))
        rule = rule_of(self._policy, **options)
        terms = Terms(self._ledger or self._open(url), rule, self._identity)
        app.extensions[_NAME] = Installed(terms, only_marked)
        install_hooks(app)
        # Before every other hook: some read the form, and then the body is gone.
        app.before_request_funcs[None] = [_keep_body, *app.before_request_funcs[None]]
        if not only_marked:
            dispatch = app.dispatch_request
            dispatched = functools.partial(_dispatch, dispatch)
            app.dispatch_request = dispatched  # type: ignore[method-assign]

    def _open(self, url: str | None) -> Ledger:
        if url is None:
            raise ConfigurationError(
                "Idempotency needs a ledger: Idempotency(app, ledger=oncekey.open(...)), "
                "or ONCEKEY_URL in the app's config"
            )
        return self.open_ledger(url)

    def open_ledger(self, url: str) -> Ledger:
        raise ConfigurationError(f"nothing here opens {url!r}; use oncekey.flask.Idempotency")


@overload
def idempotent(view: View, /) -> View: ...


@overload
def idempotent(
    *, ledger: Ledger | None = None, identity: IdentityOf | None = None, **options: Any
) -> Callable[[View], View]: ...


def idempotent(
    view: View | None = None,
    /,
    *,
    ledger: Ledger | None = None,
    identity: IdentityOf | None = None,
    **options: Any,
) -> Any:
    """Mark a view: `@idempotent`, or `@idempotent(required=True, ...)` with options of `Rule`.

    The extension applies it, with the options of the view before its own. With a `ledger`, the
    view needs no extension. With neither, requests fail and the view is not called.
    """
    mark = Mark(ledger, identity, options)

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def marked(*args: Any, **kwargs: Any) -> Any:
            if not has_request_context():
                return view(*args, **kwargs)
            call = functools.partial(current_app.ensure_sync(view), *args, **kwargs)
            installed: Installed | None = current_app.extensions.get(_NAME)
            if installed is None:
                install_hooks(current_app)
            terms = mark.terms(installed and installed.terms, f"view {request.endpoint!r}")
            return protect(terms, call)

        marked.oncekey = mark  # type: ignore[attr-defined]
        return marked  # type: ignore[return-value]

    return decorate if view is None else decorate(view)


def _terms_here() -> Terms | None:
    """What holds for the view that this request is going to."""
    installed: Installed = current_app.extensions[_NAME]
    if request.url_rule is None:
        return None
    view: Any = current_app.view_functions[request.url_rule.endpoint]
    mark = getattr(view, _NAME, None)
    if mark is None and hasattr(view, "view_class"):
        handler = getattr(view.view_class, request.method.lower(), None)
        mark = getattr(handler, _NAME, None)
    if mark is not None:
        return cast(Mark, mark).terms(installed.terms, f"view {request.endpoint!r}")
    return None if installed.only_marked else installed.terms


def _keep_body() -> None:
    if "HTTP_IDEMPOTENCY_KEY" not in request.environ:
        return
    terms = _terms_here()
    if terms is not None and request.method in terms.rule.methods:
        body_of(lines_in(request.environ), terms.rule)


def _dispatch(dispatch: Callable[..., Any], *context: Any) -> Any:
    terms = _terms_here()
    if terms is None:
        return dispatch(*context)
    return protect(terms, functools.partial(dispatch, *context))


def _settings_in(app: Flask) -> dict[str, Any]:
    found = {}
    for name, value in app.config.items():
        if not name.startswith(_PREFIX):
            continue
        option = name.removeprefix(_PREFIX).lower()
        if option not in _SETTINGS:
            near = difflib.get_close_matches(option, _SETTINGS, 1)
            hint = f"; did you mean {_PREFIX}{near[0].upper()}?" if near else ""
            raise ConfigurationError(f"app.config has an unknown setting {name}{hint}")
        found[option] = value
    return found
