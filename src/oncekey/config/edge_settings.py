"""Settings of the edge: `[edge]`, `[admin]` and `[upstreams.NAME]`."""

from __future__ import annotations

from dataclasses import dataclass

from oncekey.config.addresses import upstream_url
from oncekey.config.field import setting
from oncekey.config.kinds import duration_between, flag, whole


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """A service that requests are forwarded to."""

    url: str = setting(upstream_url, "")
    timeout: float = setting(duration_between(0.01, 3600.0), 30.0)
    connect_timeout: float = setting(duration_between(0.01, 300.0), 5.0)
    max_connections: int = setting(whole(1, 65535), 256)
    """Of each worker."""


@dataclass(frozen=True, slots=True)
class EdgeSettings:
    head_timeout: float = setting(duration_between(0.01, 300.0), 10.0)
    """How long the line and headers of a request may take to arrive."""
    body_timeout: float = setting(duration_between(0.01, 3600.0), 30.0)
    """How long its body may."""
    decide: bool = setting(flag, True)
    """Whether `/edge/decide` answers other proxies."""


@dataclass(frozen=True, slots=True)
class AdminSettings:
    enabled: bool = setting(flag, True)


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    enabled: bool = setting(flag, True)
    """It shows what the API of admins tells, and is not there without it."""
    demo: bool = setting(flag, False)
    """Whether to make a key of an admin when the server starts, and show it."""
