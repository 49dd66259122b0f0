"""Walk 2: delivery → verify → event → key → ledger → what follows → reply.

Nothing of a delivery is parsed or kept before its signature is found good.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from oncekey.core.clock import Clock
from oncekey.core.deliveries import Deliveries, Verdict
from oncekey.core.errors import IdentifierMissing, NotFound, OnceKeyError, SignatureInvalid
from oncekey.core.ledger import Ledger
from oncekey.core.model import Headers, Operation, Takeover
from oncekey.durable.engine import Engine
from oncekey.durable.shapes import json_of
from oncekey.webhooks import replies
from oncekey.webhooks.acting import Acting, ForwardTo, TakeoverAt
from oncekey.webhooks.delivery import Delivery, Event, Item
from oncekey.webhooks.handling import Handling, Result
from oncekey.webhooks.naming import operation_of, place_of
from oncekey.webhooks.provider import Provider
from oncekey.webhooks.sources import Source, Sources
from oncekey.webhooks.then import Forward, Then
from oncekey.wire.problem import Response
from oncekey.wire.replies import ok, plain

# Items of one batch that are handled side by side; their claims go into one commit.
_SIDE_BY_SIDE = 16


class Incoming(NamedTuple):
    """A request as it came in, its body read by whoever knows how large it may be."""

    method: str
    path: bytes
    """As it was sent, percent-encoded."""
    query: bytes
    headers: Headers
    """Names in lower case."""
    scheme: str
    body: bytes


def _rerun(_: str) -> Takeover:
    return "rerun"


class Receiver:
    """`forward` asks a route of the edge, `takeover` tells its rule. `public_url` is where
    providers find this server, when that is not what the requests themselves say:
    `https://hooks.example.com`."""

    def __init__(
        self,
        ledger: Ledger,
        sources: Sources,
        providers: Mapping[str, Provider],
        engine: Engine | None,
        forward: ForwardTo | None,
        *,
        takeover: TakeoverAt = _rerun,
        public_url: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._sources = sources
        self._providers = providers
        self._handling = Handling(ledger, Acting(engine, forward))
        self._takeover = takeover
        self._deliveries = Deliveries(ledger)
        self._observe = ledger.observe
        self._public_url = None if public_url is None else public_url.rstrip("/")
        self._clock = clock or ledger.clock

    async def lookup(self, provider: str | None, webhook_id: str) -> Source | None:
        """The webhook, if it is this provider's; of any provider without one."""
        source = await self._sources.find(webhook_id)
        if source is None or source.provider not in self._providers:
            return None
        return source if provider in {None, source.provider} else None

    async def receive(self, source: Source, request: Incoming) -> Response:
        try:
            event = await self._verified(source, request)
            # A name that no key can be made of is refused before anything is done.
            takeover = self._takeover_of(source.then)
            work = {operation_of(source, item, takeover): item for item in event.items}
        except OnceKeyError as error:
            return self._refuse(source, request, error)
        if event.reply is not None:
            return plain(event.reply)
        return _reply_of(await self._handled(source, event, work))

    def close(self) -> None:
        """Write what is still to be written of the log."""
        self._deliveries.flush()

    # -- the steps of the walk -----------------------------------------------------------

    async def _verified(self, source: Source, request: Incoming) -> Event:
        secrets = await self._sources.secrets(source)
        delivery = self._delivery_of(request)
        provider = self._providers[source.provider]
        return provider.verify(delivery, secrets, self._clock.now() / 1000)

    def _delivery_of(self, request: Incoming) -> Delivery:
        base = self._public_url
        if base is None:
            # Of two hosts neither counts: then no URL is the one that was signed.
            hosts = [value for name, value in request.headers if name == b"host"]
            host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
            base = f"{request.scheme}://{host}"
        target = request.path + (b"?" + request.query if request.query else b"")
        url = base + target.decode("latin-1")
        return Delivery(url, request.headers, request.body, request.method)

    def _takeover_of(self, then: Then) -> Takeover:
        """Durable work knows by its key what was done; a service behind may not."""
        return self._takeover(then.path) if isinstance(then, Forward) else "rerun"

    async def _handled(
        self, source: Source, event: Event, work: Mapping[Operation, Item]
    ) -> list[tuple[Item, Result]]:
        room = asyncio.Semaphore(_SIDE_BY_SIDE)

        async def handle(operation: Operation, item: Item) -> tuple[Item, Result]:
            async with room:
                result = await self._handling.handle(source, event, item, operation)
            self._tell(source, item, result)
            return item, result

        if len(work) == 1:
            return [await handle(*each) for each in work.items()]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(handle(*each)) for each in work.items()]
        return [task.result() for task in tasks]

    # -- what is told of it --------------------------------------------------------------

    def _refuse(self, source: Source, request: Incoming, error: OnceKeyError) -> Response:
        # Also true of a webhook that was deleted a moment ago.
        theirs = isinstance(error, SignatureInvalid | IdentifierMissing | NotFound)
        verdict: Verdict = "refused" if theirs else "released"
        self._observe(f"webhook-{verdict}", place_of(source.provider))
        reason = f"{error.code}: {error}"
        self._deliveries.record(source.id, verdict, reason=reason, size=len(request.body))
        return replies.refused(error)

    def _tell(self, source: Source, item: Item, result: Result) -> None:
        self._observe(f"webhook-{result.verdict}", place_of(source.provider))
        self._deliveries.record(
            source.id,
            result.verdict,
            identifier=item.identifier,
            reason=result.reason,
            operation=result.operation,
            size=len(item.body),
        )


def _reply_of(results: list[tuple[Item, Result]]) -> Response:
    """Of a batch: that it is done only when all of it is. What is to come again counts most."""
    if len(results) == 1:
        return results[0][1].response
    for standing in ("again", "failed"):
        for _, result in results:
            if result.standing == standing:
                return result.response
    told = [{"identifier": item.identifier, "verdict": each.verdict} for item, each in results]
    return ok(json_of({"status": "done", "items": told}))
