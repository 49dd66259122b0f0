"""The configuration: one TOML file and the environment, read into frozen values. Builds nothing."""

from oncekey.config.load import DEFAULT_FILE, load
from oncekey.config.settings import (
    AppSettings,
    RouteSettings,
    ScheduleSettings,
    ServerSettings,
    Settings,
    StoreSettings,
)

__all__ = [
    "DEFAULT_FILE",
    "AppSettings",
    "RouteSettings",
    "ScheduleSettings",
    "ServerSettings",
    "Settings",
    "StoreSettings",
    "load",
]
