"""What `oncekey serve` makes for trying things out, on one machine: API keys and a webhook."""

from __future__ import annotations

from oncekey.compose.webhooks import providers_for, sources_of
from oncekey.config import Settings
from oncekey.core.callers import Callers
from oncekey.core.errors import ConfigurationError
from oncekey.core.ledger import Ledger
from oncekey.core.scope import PLATFORM_LEVEL, TENANT_LEVEL
from oncekey.webhooks.sources import Source
from oncekey.webhooks.then import parse_then

_LIFE = 24 * 3600.0
_TENANT = "default"
_LABEL = "made by oncekey serve"


async def demo_key(ledger: Ledger) -> str:
    """The secret of a key for the tenant `default`, good for a day."""
    return (await Callers(ledger).create(_TENANT, label=_LABEL, expires_in=_LIFE))[1]


async def demo_admin_key(ledger: Ledger) -> str:
    """The secret of an admin's key, good for a day."""
    callers = Callers(ledger)
    made = await callers.create(
        _TENANT, project=PLATFORM_LEVEL, label=_LABEL, expires_in=_LIFE, role="admin"
    )
    return made[1]


async def demo_webhook(settings: Settings, ledger: Ledger) -> Source | None:
    """The one that was made when the server last started, or else a new one."""
    demo = settings.webhooks.demo
    if demo is None:
        return None
    provider = providers_for(settings).get(demo.provider)
    if provider is None:
        raise ConfigurationError(f"webhooks.demo.provider: there is no provider {demo.provider!r}")
    then, sources = parse_then(demo.then), sources_of(settings, ledger)
    for each in await sources.list(_TENANT):
        if (each.label, each.provider, each.then) == (_LABEL, demo.provider, then):
            return each
    secret = provider.new_secret()
    return await sources.create(
        _TENANT, TENANT_LEVEL, demo.provider, then, secret=secret, label=_LABEL
    )
