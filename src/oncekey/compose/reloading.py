"""What another configuration can change while requests are served. Each part builds what it needs
first and is put in force afterwards, so that a mistake in one of them changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from oncekey.compose.configured import routes_of
from oncekey.config.settings import Settings
from oncekey.core.ledger import Ledger
from oncekey.core.retention import DEFAULT_CLASSES
from oncekey.integrations.asgi import IdempotencyMiddleware
from oncekey.integrations.lifespan import App, Receive, Scope, Send

PutInForce = Callable[[], None]


class Reloadable(Protocol):
    async def prepare(self, settings: Settings) -> PutInForce:
        """Build what the settings say; what is answered puts it in force, and cannot fail.

        Raises for what cannot be built, with nothing changed.
        """
        ...


class ProtectedApp:
    """The app behind its routes. A request ends under the rules it began with."""

    def __init__(self, app: App, ledger: Ledger, settings: Settings) -> None:
        self._app = app
        self._ledger = ledger
        self._protected = self._with_routes(settings)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        return self._protected(scope, receive, send)

    async def prepare(self, settings: Settings) -> PutInForce:
        protected = await asyncio.to_thread(self._with_routes, settings)

        def put_in_force() -> None:
            self._protected = protected

        return put_in_force

    def _with_routes(self, settings: Settings) -> IdempotencyMiddleware:
        routes = routes_of(settings)
        return IdempotencyMiddleware(self._app, ledger=self._ledger, routes=routes)


class RetentionClasses:
    """Those of the configuration. What was set at run time wins, as it does at the start; a class
    that is gone from the configuration stays, since records are of it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def prepare(self, settings: Settings) -> PutInForce:
        store = self._ledger.store
        configured = {**DEFAULT_CLASSES, **settings.retention}
        stored = await asyncio.to_thread(store.retention)
        # A cluster that keeps answers by itself keeps them as long as the longest class says.
        retain = getattr(store, "retain", None)
        if retain is not None:
            await asyncio.to_thread(retain, configured)
        classes = {**configured, **stored}
        return lambda: self._ledger.retention_classes.learn(classes)
