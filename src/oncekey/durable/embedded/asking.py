"""One question to the store at a time, from the event loop; and the keys of durable work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from oncekey.core.errors import StoreUnavailable
from oncekey.core.key import check_name
from oncekey.core.ledger import Ledger
from oncekey.core.model import NO_FINGERPRINT, Operation, Ref
from oncekey.core.ports import Insert
from oncekey.core.retention import MAX_SECONDS
from oncekey.core.scope import TENANT_LEVEL, Scope, namespace_of
from oncekey.core.waiting import waiter_for

_PAUSE_AFTER_FAILURE = 0.2
_FOREVER = MAX_SECONDS * 1000
# What a key of durable work is the key of: the same text means another thing in each.
STARTS, PROMISES, REQUESTS, EVENTS = "start", "promise", "resolve", "event"
_SUBJECT = "service:oncekey"

Heir = Callable[[Any, Any], None]


class Asking:
    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.clock = ledger.clock
        self.store = ledger.store

    async def ask(self, request: Any, heir: Heir | None = None) -> Any:
        """The answer; `heir` is told it when the caller has gone away by then."""
        waiter = waiter_for(request, heir)
        self.store.submit(request, waiter)
        try:
            answer = await waiter.future
        except BaseException:
            waiter.desert()
            raise
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def insist(self, request: Any) -> Any:
        """The answer, however long the store is away. Only for what may be carried out twice."""
        while True:
            try:
                return await self.ask(request)
            except StoreUnavailable:
                await asyncio.sleep(_PAUSE_AFTER_FAILURE)

    def draw(self) -> int:
        """A number nothing has."""
        return self.ledger.draw()

    def insert(
        self,
        tenant: str,
        endpoint: str,
        key: str,
        number: int,
        *,
        fingerprint: bytes = NO_FINGERPRINT,
        keep: int | None = None,
    ) -> Insert:
        """The claim of a key, for `keep` ms; without, for as long as what has it runs."""
        ref, now = ref_of(tenant, endpoint, key), self.clock.now()
        operation = Operation(ref, fingerprint)
        return Insert(number, ref.digest, operation, now, now + (keep or _FOREVER))


def ref_of(tenant: str, endpoint: str, key: str) -> Ref:
    return Ref(Scope(namespace_of(tenant, TENANT_LEVEL, _SUBJECT), endpoint), check_name(key))


def is_of_durable_work(scope: Scope, endpoint: str) -> bool:
    """Whether its keys are those of starts, say, and nobody else's."""
    return scope.endpoint == endpoint and scope.namespace.endswith(f":{_SUBJECT}")
