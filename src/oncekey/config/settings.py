"""Every setting there is, with its default. A field is a key; its kind says what it may hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from oncekey.config.kinds import (
    Kind,
    Named,
    Section,
    Sections,
    choice,
    duration,
    fingerprint,
    flag,
    header_names,
    json_value,
    methods,
    secret,
    target,
    text,
    whole,
    words,
)
from oncekey.core.retention import check_class

_LARGEST = 1 << 40
# A field of that name hides it from those below.
_TARGET = target


def setting(kind: Kind | Sections, default: Any = None) -> Any:
    return field(default=default, metadata={"kind": kind})


@dataclass(frozen=True, slots=True)
class StoreSettings:
    url: str = setting(text, "sqlite:///oncekey.db")
    lease: float = setting(duration, 15.0)
    heartbeat: float | None = setting(duration)
    """A third of the lease unless given."""
    sweep_interval: float = setting(duration, 300.0)
    cache_bytes: int = setting(whole(0, _LARGEST), 64 << 20)


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
class ApiKeySettings:
    provider: str = setting(choice("local", later=("unkey",)), "local")
    demo: bool = setting(flag, False)
    """Make a key when the server starts, and show it: for trying things out on one machine."""


@dataclass(frozen=True, slots=True)
class AuthSettings:
    api_keys: ApiKeySettings = field(
        default_factory=ApiKeySettings, metadata={"kind": Section(ApiKeySettings)}
    )


@dataclass(frozen=True, slots=True)
class RouteSettings:
    """Everything but the path may be left out; what is left out is as `wire.rule.Rule` has it."""

    path: str = setting(text, "")
    methods: tuple[str, ...] | None = setting(methods)
    policy: str | None = setting(
        choice("REQUIRED_A", "ACCEPTED", "PROHIBITED", later=("REQUIRED_B", "HANDLER_INTERNAL_C"))
    )
    required: bool | None = setting(flag)
    in_flight: str | None = setting(choice("conflict", "attach"))
    attach_timeout: float | None = setting(duration)
    takeover: str | None = setting(choice("rerun", "refuse", "recover"))
    recover: str | None = setting(target)
    retention: str | None = setting(text)
    fingerprint: str | tuple[str, ...] | None = setting(fingerprint)
    store_server_errors: bool | None = setting(flag)
    store_events: bool | None = setting(flag)
    max_stored_body: int | None = setting(whole(0, _LARGEST))
    max_request_body: int | None = setting(whole(0, _LARGEST))
    drop_headers: tuple[str, ...] | None = setting(header_names)
    fail_open: bool | None = setting(flag)
    example: str | None = setting(text)
    """A request body to try the route with; `oncekey serve` shows it when it starts."""

    def given(self) -> dict[str, Any]:
        """What the file says about this route, beside its path."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: value for name, value in values.items() if value is not None and name != "path"
        }


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """Either `cron` or `every`, and either `workflow` or `url`. What is left out is as
    `schedules.Schedule` has it."""

    id: str = setting(text, "")
    cron: str | None = setting(text)
    timezone: str | None = setting(text)
    every: float | None = setting(duration)
    tenant: str = setting(text, "default")
    workflow: str | None = setting(text)
    input: Any = setting(json_value)  # noqa: RUF009 - any JSON is as immutable as its settings
    url: str | None = setting(text)
    data: Any = setting(json_value)  # noqa: RUF009
    secret_env: str | None = setting(text)
    secret: str | None = field(default=None, repr=False, metadata={"kind": secret})
    timeout: float | None = setting(duration)
    attempts: int | None = setting(whole(1, 70))
    missed: str = setting(choice("skip", "last", "all"), "last")
    paused: bool = setting(flag, False)


@dataclass(frozen=True, slots=True)
class Settings:
    store: StoreSettings = field(
        default_factory=StoreSettings, metadata={"kind": Section(StoreSettings)}
    )
    server: ServerSettings = field(
        default_factory=ServerSettings, metadata={"kind": Section(ServerSettings)}
    )
    app: AppSettings = field(default_factory=AppSettings, metadata={"kind": Section(AppSettings)})
    auth: AuthSettings = field(
        default_factory=AuthSettings, metadata={"kind": Section(AuthSettings)}
    )
    retention: Mapping[str, float] = field(
        default_factory=dict, metadata={"kind": Named(check_class, duration)}
    )
    routes: tuple[RouteSettings, ...] = setting(Sections(RouteSettings), ())
    schedules: tuple[ScheduleSettings, ...] = setting(Sections(ScheduleSettings), ())
    folder: Path = Path()
    """Where the file lies; what it names by a relative path or module is found from there."""


# Known by name, so that nobody believes they are in force.
LATER = {
    "auth.jwt": "tokens would not be checked",
    "upstreams": "requests would not be forwarded",
    "providers": "webhooks would not be verified",
    "routes.upstream": "requests would not be forwarded",
}
