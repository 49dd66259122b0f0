"""The configuration: one TOML file and the environment, read into frozen values. Builds nothing."""

from oncekey.config.auth_settings import (
    ApiKeySettings,
    AuthSettings,
    ClaimSettings,
    GatewayHeaderSettings,
    GatewaySettings,
    JwtSettings,
    UnkeySettings,
)
from oncekey.config.edge_settings import AdminSettings, EdgeSettings, UpstreamSettings
from oncekey.config.load import DEFAULT_FILE, load
from oncekey.config.route_settings import RouteSettings
from oncekey.config.schedule_settings import ScheduleSettings
from oncekey.config.settings import AppSettings, ServerSettings, Settings, StoreSettings
from oncekey.config.webhook_settings import (
    IdentifierSettings,
    ProviderSettings,
    SignatureSettings,
    TimestampSettings,
    VaultSettings,
    WebhookSettings,
)

__all__ = [
    "DEFAULT_FILE",
    "AdminSettings",
    "ApiKeySettings",
    "AppSettings",
    "AuthSettings",
    "ClaimSettings",
    "EdgeSettings",
    "GatewayHeaderSettings",
    "GatewaySettings",
    "IdentifierSettings",
    "JwtSettings",
    "ProviderSettings",
    "RouteSettings",
    "ScheduleSettings",
    "ServerSettings",
    "Settings",
    "SignatureSettings",
    "StoreSettings",
    "TimestampSettings",
    "UnkeySettings",
    "UpstreamSettings",
    "VaultSettings",
    "WebhookSettings",
    "load",
]
