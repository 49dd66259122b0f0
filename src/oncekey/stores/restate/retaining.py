"""How long Restate itself answers repeats of a forwarded request: as long as the longest retention
class says. When an answer is over is written in its record."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from oncekey.stores.restate.admin import Admin
from oncekey.stores.restate.objects import retry_policy
from oncekey.stores.restate.options import RestateOptions

_FORWARD = "forward"


class Retaining:
    """`requests` is the object of keys, as it is declared to Restate."""

    def __init__(self, admin: Admin, requests: Any, options: RestateOptions) -> None:
        self._admin = admin
        self._requests = requests
        self._classes: Mapping[str, float] = options.classes
        forward = requests.handlers.get(_FORWARD)
        if forward is not None:
            # Its answers are kept as the object says; those of other handlers are soon forgotten.
            forward.idempotency_retention = None
            forward.invocation_retry_policy = retry_policy(
                options.max_attempts, options.on_max_attempts
            )
        self._declare({})

    def configure(self, classes: Mapping[str, float]) -> None:
        """The classes of the configuration are others from now on."""
        self._classes = classes

    async def learn(self, stored: Mapping[str, float]) -> None:
        """`stored`: the classes that were set at run time, which win."""
        if self._declare(stored):
            await self._tell()

    async def apply(self, stored: Mapping[str, float]) -> None:
        """As `learn`, by a process that need not know what Restate was told so far."""
        self._declare(stored)
        await self._tell()

    async def _tell(self) -> None:
        kept = {"idempotency_retention": f"PT{self._seconds}S"}
        path = f"/services/{self._requests.name}"
        await self._admin.ask("PATCH", path, msgspec.json.encode(kept))

    def _declare(self, stored: Mapping[str, float]) -> bool:
        """For the next time that it is registered; answers whether it is other than before."""
        before = self._requests.idempotency_retention
        self._seconds = round(max({**self._classes, **stored}.values())) or 1
        after = self._requests.idempotency_retention = timedelta(seconds=self._seconds)
        return bool(before != after)
