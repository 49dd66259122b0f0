"""What admins work with, beside the ledger and the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from oncekey.core.audit import Audit
from oncekey.core.callers import Callers
from oncekey.core.census import Censuses
from oncekey.core.deliveries import Deliveries
from oncekey.observe.pulse import Pulse
from oncekey.webhooks.provider import Provider
from oncekey.webhooks.receiver import Reception
from oncekey.webhooks.sources import Sources


class Means(NamedTuple):
    callers: Callers
    audit: Audit
    deliveries: Deliveries
    sources: Sources
    providers: Mapping[str, Provider]
    retention: Mapping[str, float]
    """Seconds by class, as far as the configuration says."""
    censuses: Censuses
    reception: Reception
    """Where test deliveries go."""
    pulse: Pulse | None = None
    """How the server has been; None where nobody counts."""
