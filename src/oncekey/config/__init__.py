"""The configuration: one TOML file and the environment, read into frozen values. Builds nothing."""

from oncekey.config.load import DEFAULT_FILE, load
from oncekey.config.settings import (
    ApiKeySettings,
    AppSettings,
    AuthSettings,
    RouteSettings,
    ScheduleSettings,
    ServerSettings,
    Settings,
    StoreSettings,
)

__all__ = [
    "DEFAULT_FILE",
    "ApiKeySettings",
    "AppSettings",
    "AuthSettings",
    "RouteSettings",
    "ScheduleSettings",
    "ServerSettings",
    "Settings",
    "StoreSettings",
    "load",
]
