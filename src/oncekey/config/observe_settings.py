"""Settings of what operators see: `[metrics]`, `[log]` and `[traces]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from oncekey.config.addresses import url
from oncekey.config.field import setting
from oncekey.config.kinds import choice, flag, path, share, text, whole

# A field of that name hides it from those below.
_PATH = path


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    enabled: bool = setting(flag, True)
    """Whether requests are counted and told."""
    path: str = setting(_PATH, "/metrics")
    """Where they are told. An app that has that path itself may want another."""
    access: Literal["admin", "anyone"] = setting(choice("admin", "anyone"), "admin")
    """Who may read them."""
    max_tenants: int = setting(whole(1, 10_000), 100)
    """Pairs of tenant and project with series of their own; the others share one."""
    max_endpoints: int = setting(whole(1, 10_000), 200)


@dataclass(frozen=True, slots=True)
class LogSettings:
    format: Literal["text", "json"] | None = setting(choice("text", "json"))
    """Text on a terminal and JSON elsewhere, unless given."""
    level: Literal["debug", "info", "warning", "error"] = setting(
        choice("debug", "info", "warning", "error"), "info"
    )
    requests: Literal["none", "trouble", "all"] = setting(
        choice("none", "trouble", "all"), "trouble"
    )
    """Which requests have a line each."""


@dataclass(frozen=True, slots=True)
class TracesSettings:
    endpoint: str | None = setting(url)
    """Where an OTLP collector takes traces over HTTP. There are none without it."""
    sample: float = setting(share, 1.0)
    """Of the traces that begin here; those of callers are as they say."""
    service: str = setting(text, "oncekey")
