"""Every setting there is, with its default. A field is a key; its kind says what it may hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from oncekey.config.addresses import store_url
from oncekey.config.auth_settings import AuthSettings
from oncekey.config.edge_settings import (
    AdminSettings,
    ConsoleSettings,
    EdgeSettings,
    UpstreamSettings,
)
from oncekey.config.field import LARGEST, hidden, named, section, setting
from oncekey.config.kinds import (
    Named,
    Section,
    Sections,
    duration,
    flag,
    target,
    text,
    upstream_name,
    whole,
    words,
)
from oncekey.config.observe_settings import LogSettings, MetricsSettings, TracesSettings
from oncekey.config.restate_settings import RestateSettings
from oncekey.config.route_settings import RouteSettings
from oncekey.config.schedule_settings import ScheduleSettings
from oncekey.config.webhook_settings import ProviderSettings, WebhookSettings
from oncekey.core.retention import check_class

# A field of that name hides it from those below.
_TARGET = target


@dataclass(frozen=True, slots=True)
class StoreSettings:
    url: str = hidden(store_url, "sqlite:///oncekey.db")
    """It may have a password in it."""
    lease: float = setting(duration, 15.0)
    heartbeat: float | None = setting(duration)
    """A third of the lease unless given."""
    sweep_interval: float = setting(duration, 300.0)
    cache_bytes: int = setting(whole(0, LARGEST), 64 << 20)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    host: str = setting(text, "127.0.0.1")
    port: int = setting(whole(0, 65535), 8700)
    workers: int = setting(whole(1, 256), 1)
    grace: float = setting(duration, 20.0)
    """How long running requests may take to finish when the server is told to stop; and then steps
    that are being done."""
    api: bool | None = setting(flag)
    """Whether durable work is offered over HTTP: where there are workflows, unless given."""
    grpc_port: int | None = setting(whole(0, 65535))


@dataclass(frozen=True, slots=True)
class AppSettings:
    target: str = setting(_TARGET, "")
    workflows: str = setting(_TARGET, "")
    examples: tuple[str, ...] = setting(words, ())
    """Commands to try; `oncekey serve` shows them when it starts."""


@dataclass(frozen=True, slots=True)
class Settings:
    store: StoreSettings = section(StoreSettings)
    server: ServerSettings = section(ServerSettings)
    app: AppSettings = section(AppSettings)
    auth: AuthSettings = section(AuthSettings)
    retention: Mapping[str, float] = named(Named(check_class, duration))
    edge: EdgeSettings = section(EdgeSettings)
    admin: AdminSettings = section(AdminSettings)
    console: ConsoleSettings = section(ConsoleSettings)
    metrics: MetricsSettings = section(MetricsSettings)
    log: LogSettings = section(LogSettings)
    traces: TracesSettings = section(TracesSettings)
    upstreams: Mapping[str, UpstreamSettings] = named(
        Named(upstream_name, Section(UpstreamSettings))
    )
    routes: tuple[RouteSettings, ...] = setting(Sections(RouteSettings), ())
    webhooks: WebhookSettings = section(WebhookSettings)
    providers: tuple[ProviderSettings, ...] = setting(Sections(ProviderSettings), ())
    schedules: tuple[ScheduleSettings, ...] = setting(Sections(ScheduleSettings), ())
    restate: RestateSettings = section(RestateSettings)
    file: Path | None = None
    folder: Path = Path()
    """Where the file lies; what it names by a relative path or module is found from there."""
