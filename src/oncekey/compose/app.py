"""An app of workflows and tasks on the store a URL names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from oncekey.compose.ledger import open_ledger
from oncekey.core.ledger import Ledger
from oncekey.durable import app as durable


class App(durable.App):
    __doc__ = durable.App.__doc__

    @asynccontextmanager
    async def open(
        self, store: Ledger | str = "sqlite:///oncekey.db", **options: Any
    ) -> AsyncIterator[App]:
        """Run the app's work in this process until the block ends.

        `store` is the URL of a store, opened with the `options` of `oncekey.open` and closed in the
        end, or a ledger that is open already.
        """
        ledger = open_ledger(store, **options) if isinstance(store, str) else store
        try:
            async with self.using(self.engine_on(ledger)):
                yield self
        finally:
            if ledger is not store:
                ledger.close()
