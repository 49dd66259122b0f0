"""Settings to objects: what admins work with."""

from __future__ import annotations

from oncekey.api.admin.means import Means
from oncekey.compose.webhooks import SharedSources, providers_for
from oncekey.config.settings import Settings
from oncekey.core.audit import Audit
from oncekey.core.callers import Callers
from oncekey.core.census import Censuses
from oncekey.core.deliveries import Deliveries
from oncekey.core.ledger import Ledger
from oncekey.observe.pulse import Pulse
from oncekey.webhooks.receiver import Reception


def means_of(
    settings: Settings,
    ledger: Ledger,
    callers: Callers,
    sources: SharedSources,
    censuses: Censuses,
    reception: Reception,
    pulse: Pulse | None,
) -> Means | None:
    """None where there is nothing for admins."""
    if not settings.admin.enabled:
        return None
    return Means(
        callers,
        Audit(ledger),
        Deliveries(ledger),
        sources.under(settings),
        providers_for(settings),
        settings.retention,
        censuses,
        reception,
        pulse,
    )
