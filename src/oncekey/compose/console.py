"""Settings to objects: the console in front of everything else."""

from __future__ import annotations

from oncekey.compose.durable import DurableWork
from oncekey.config.settings import Settings
from oncekey.console.app import Console
from oncekey.core.ledger import Ledger
from oncekey.core.sessions import Sessions


def console_of(settings: Settings, ledger: Ledger, durable: DurableWork | None) -> Console | None:
    """None where there is none: it shows what the API of admins does."""
    if not settings.console.enabled or not settings.admin.enabled or durable is None:
        return None
    return Console(durable.api, Sessions(ledger, durable.callers))
