"""Settings to the application that `oncekey serve` runs: an app, the API, and durable work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from oncekey.compose.configured import ledger_of
from oncekey.compose.console import console_of
from oncekey.compose.durable import DurableWork, Front, Owner
from oncekey.compose.edge import EdgeWork
from oncekey.compose.observing import Observing, observing_of
from oncekey.compose.reloading import ProtectedApp, Reloadable, RetentionClasses
from oncekey.compose.target import load_target
from oncekey.config.settings import Settings
from oncekey.config.webhook_settings import WebhookSettings
from oncekey.console.app import Console
from oncekey.core.callers import Callers
from oncekey.core.census import Censuses
from oncekey.core.errors import ConfigurationError
from oncekey.core.ledger import Ledger
from oncekey.durable.app import App as Workflows
from oncekey.integrations.asgi import respond
from oncekey.integrations.lifespan import App, Lifespan, Receive, Scope, Send
from oncekey.observe.pulse import Pulse
from oncekey.wire.problem import problem


class Targets(NamedTuple):
    """What there is to serve."""

    app: App | None
    workflows: Workflows | None


class Service(Lifespan):
    """An ASGI app for one process. `durable` is None where there is no durable work."""

    def __init__(
        self,
        edge: EdgeWork,
        ledger: Ledger,
        durable: DurableWork | None,
        *,
        has_api: bool,
        console: Console | None = None,
        observing: Observing | None = None,
        parts: Sequence[Reloadable] = (),
    ) -> None:
        self.ledger = ledger
        self.durable = durable
        self.has_api = has_api
        self.console = console
        self.observing = observing
        self.edge_app = edge.app
        self._edge = edge
        self._parts = (edge, *parts)
        super().__init__(edge.app, ledger.close, self._running)

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        """Deliveries may need durable work, so it is there before them and after them."""
        async with AsyncExitStack() as stack:
            if self.durable is not None:
                await stack.enter_async_context(self.durable.running())
            await stack.enter_async_context(self._edge.running())
            if self.observing is not None:
                censuses = None if self.durable is None else self.durable.censuses
                running = self.observing.running(censuses or Censuses(self.ledger))
                await stack.enter_async_context(running)
            yield

    def let_go(self) -> None:
        """It is about to stop: nobody is kept waiting any longer."""
        if self.durable is not None:
            self.durable.api.patience.end()
        if self.console is not None:
            self.console.let_go()

    async def reload(self, settings: Settings) -> None:
        """Put the settings in force for the next request; those under way end as they began.

        Raises for what cannot be built, with nothing changed. What only a start can change is not
        looked at.
        """
        ready = [await part.prepare(settings) for part in self._parts]
        for put_in_force in ready:
            put_in_force()


def service_of(settings: Settings, folder: Path | None = None) -> Service:
    """What the settings name, on their ledger, which is closed at the end of the service. `folder`
    is for the processes of one server to add up what they count."""
    targets = targets_of(settings)
    observing = observing_of(settings, folder)
    watch = None if observing is None else observing.watch
    ledger = ledger_of(settings, has_edge=True, observer=watch)
    try:
        return _service_on(ledger, settings, targets, observing)
    except BaseException:
        ledger.close()
        raise


def _service_on(
    ledger: Ledger, settings: Settings, targets: Targets, observing: Observing | None
) -> Service:
    pulse = None if observing is None else observing.pulse
    durable = _durable_of(settings, ledger, targets.workflows, pulse)
    app = ProtectedApp(targets.app, ledger, settings) if targets.app is not None else None
    others = (each for each in (app, durable) if each is not None)
    parts = (RetentionClasses(ledger), *others)
    has_api = durable is not None and durable.offers_api
    console = console_of(settings, ledger, durable)
    api = None if durable is None else durable.api
    callers = Callers(ledger) if durable is None else durable.callers
    metrics = None if observing is None else observing.page(settings, callers)
    ours: list[Owner] = [each for each in (metrics, console, api) if each is not None]
    front = Front(ours, app or _nothing)

    def reserved(path: str) -> bool:
        return any(each.has(path) for each in ours)

    edge = EdgeWork(settings, ledger, durable, front, has_app=app is not None, reserved=reserved)
    return Service(
        edge,
        ledger,
        durable,
        has_api=has_api,
        console=console,
        observing=observing,
        parts=parts,
    )


def targets_of(settings: Settings) -> Targets:
    """Load what `[app]` names. Raises `ConfigurationError` for what cannot be served."""
    app = workflows = None
    if settings.app.workflows:
        workflows = load_target(settings.app.workflows, settings.folder)
        if not isinstance(workflows, Workflows):
            raise ConfigurationError(
                f"app.workflows: {settings.app.workflows} is no oncekey.App; an ASGI app goes to "
                "app.target"
            )
    if settings.app.target:
        app = load_target(settings.app.target, settings.folder)
        if isinstance(app, Workflows):
            if workflows is not None:
                raise ConfigurationError(
                    f"app.target: {settings.app.target} has workflows, and app.workflows names "
                    "others; register them all with one oncekey.App"
                )
            app, workflows = None, app
    return Targets(app, workflows)


def _durable_of(
    settings: Settings, ledger: Ledger, workflows: Workflows | None, pulse: Pulse | None
) -> DurableWork | None:
    server = settings.server
    # What a delivery resolves or starts is durable work.
    hooks = settings.upstreams or settings.providers or settings.webhooks != WebhookSettings()
    works = workflows is not None or (
        server.api or server.grpc_port is not None or settings.schedules or hooks
    )
    seen = settings.console.enabled and settings.admin.enabled
    if not works and not seen:
        return None
    return DurableWork(settings, ledger, workflows, pulse, asked=not works)


async def _nothing(scope: Scope, _: Receive, send: Send) -> None:
    """Stands where there is no app."""
    match scope["type"]:
        case "http":
            await respond(send, problem("not-found"))
        case "websocket":
            await send({"type": "websocket.close"})
        case _:
            raise NotImplementedError
