"""Which engine runs durable work on the store of a ledger."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oncekey.core.ledger import Ledger
from oncekey.durable.definition import Definition
from oncekey.durable.embedded.engine import EmbeddedEngine


def engine_for(
    ledger: Ledger, definitions: Iterable[Definition] = (), **options: Any
) -> EmbeddedEngine:
    """Not yet open. Without definitions it starts, settles and looks; others run what is ready."""
    if getattr(ledger.store, "dispatches", False):
        # Its store is open, so that what this needs is installed.
        from oncekey.durable.restate.engine import RestateEngine

        return RestateEngine(ledger, definitions, **options)
    return EmbeddedEngine(ledger, definitions, **options)
