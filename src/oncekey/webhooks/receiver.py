"""Walk 2: delivery → verify → event → key → ledger → what follows → reply.

Nothing of a delivery is parsed or kept before its signature is found good.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from oncekey.core.clock import Clock
from oncekey.core.deliveries import Deliveries, Verdict
from oncekey.core.errors import (
    IdentifierMissing,
    InvalidInput,
    NotFound,
    OnceKeyError,
    SignatureInvalid,
)
from oncekey.core.events import Seen
from oncekey.core.ledger import Ledger
from oncekey.core.model import Headers, Operation, Takeover
from oncekey.durable.engine import Engine
from oncekey.durable.shapes import json_of
from oncekey.webhooks import replies
from oncekey.webhooks.acting import Acting, ForwardTo, TakeoverAt
from oncekey.webhooks.delivery import Delivery, Event, Item
from oncekey.webhooks.handling import Handling, Result
from oncekey.webhooks.naming import operation_of, path_of
from oncekey.webhooks.provider import Provider
from oncekey.webhooks.sources import Source, Sources
from oncekey.webhooks.spans import part, span_of, span_of_item
from oncekey.webhooks.telling import Telling
from oncekey.webhooks.then import Forward, Then
from oncekey.wire.problem import Response
from oncekey.wire.replies import ok, plain

# Items of one batch that are handled side by side; their claims go into one commit.
_SIDE_BY_SIDE = 16
# Of deliveries that are made here. Some providers sign the URL, so there must be one.
_HERE: Headers = ((b"host", b"localhost"),)


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


class Told(NamedTuple):
    """What the log says of an item, or of a whole delivery that was refused."""

    verdict: Verdict
    reason: str
    identifier: str = ""
    operation: int | None = None
    line: str | None = None
    """The id of its line in the log, unless it is part of a flood."""


class Taken(NamedTuple):
    """What a provider hears, and what is told of it here; nothing of one that asked for an echo."""

    response: Response
    told: tuple[Told, ...] = ()


class Handled(NamedTuple):
    item: Item
    result: Result
    told: Told


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
        self._telling = Telling(ledger)
        self._public_url = None if public_url is None else public_url.rstrip("/")
        self._clock = clock or ledger.clock

    def knows(self, provider: str) -> bool:
        return provider in self._providers

    async def lookup(self, provider: str | None, webhook_id: str) -> Source | None:
        """The webhook, if it is this provider's; of any provider without one."""
        source = await self._sources.find(webhook_id)
        if source is None or source.provider not in self._providers:
            return None
        return source if provider in {None, source.provider} else None

    def lose(self, place: str, status: int, began: float) -> None:
        """A delivery whose webhook could not be looked up was answered so."""
        self._telling.lose(place, status, began)

    async def receive(self, source: Source, request: Incoming) -> Response:
        return (await self.take(source, request)).response

    async def take(self, source: Source, request: Incoming) -> Taken:
        seen = self._telling.begin(source, request.headers)
        status, verdicts = 0, []
        try:
            taken = await self._take(source, request, seen)
            status, verdicts = taken.response.status, [each.verdict for each in taken.told]
            return taken
        finally:
            self._telling.end(seen, status, verdicts)

    async def _take(self, source: Source, request: Incoming, seen: Seen | None) -> Taken:
        try:
            with part(span_of(seen), "verify"):
                event = await self._verified(source, request)
            # A name that no key can be made of is refused before anything is done.
            takeover = self._takeover_of(source.then)
            work = {operation_of(source, item, takeover): item for item in event.items}
        except OnceKeyError as error:
            return self._refuse(source, request, error)
        if event.reply is not None:
            return Taken(plain(event.reply))
        handled = await self._handled(source, event, work, seen)
        return Taken(_reply_of(handled), tuple(each.told for each in handled))

    async def signed(
        self, source: Source, body: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()
    ) -> Incoming:
        """A delivery to try it with, as its provider would send it: by the newest secret. Raises
        `SecretsUnavailable`, and `InvalidInput` where that secret cannot sign."""
        secret, *_ = await self._sources.secrets(source)
        request = Incoming("POST", path_of(source).encode(), b"", _HERE + headers, "http", body)
        provider = self._providers[source.provider]
        try:
            signed = provider.sign(self._delivery_of(request), secret, self._clock.now() / 1000)
        except (OnceKeyError, ValueError) as error:
            reason = f": {error}" if isinstance(error, OnceKeyError) else ""
            raise InvalidInput(
                f"no delivery of {source.provider} can be signed here with the secret of this "
                f"webhook{reason}; send one from the provider's own pages"
            ) from None
        # What is signed may be in the query, too.
        query = urlsplit(signed.url).query.encode()
        return request._replace(query=query, headers=signed.headers, body=signed.body)

    async def written(self) -> None:
        """Once the log has all that was received so far, for whoever is about to look."""
        await self._deliveries.written()

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
        self, source: Source, event: Event, work: Mapping[Operation, Item], seen: Seen | None
    ) -> list[Handled]:
        room = asyncio.Semaphore(_SIDE_BY_SIDE)

        async def handle(operation: Operation, item: Item) -> Handled:
            async with room:
                span = span_of_item(seen)
                result = await self._handling.handle(source, event, item, operation, span)
            self._telling.tell(source, result, seen, operation.ref.key)
            return Handled(item, result, self._tell(source, item, result))

        if len(work) == 1:
            return [await handle(*each) for each in work.items()]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(handle(*each)) for each in work.items()]
        return [task.result() for task in tasks]

    # -- what is told of it --------------------------------------------------------------

    def _refuse(self, source: Source, request: Incoming, error: OnceKeyError) -> Taken:
        # Also true of a webhook that was deleted a moment ago.
        theirs = isinstance(error, SignatureInvalid | IdentifierMissing | NotFound)
        verdict: Verdict = "refused" if theirs else "released"
        self._telling.refuse(source, verdict, error)
        reason = f"{error.code}: {error}"
        size = len(request.body)
        line = self._deliveries.record(source.id, verdict, reason=reason, size=size)
        return Taken(replies.refused(error), (Told(verdict, reason, line=line),))

    def _tell(self, source: Source, item: Item, result: Result) -> Told:
        verdict, reason, number = result.verdict, result.reason, result.operation
        line = self._deliveries.record(
            source.id,
            verdict,
            identifier=item.identifier,
            reason=reason,
            operation=number,
            size=len(item.body),
        )
        return Told(verdict, reason, item.identifier, number, line)


class Reception:
    """Where deliveries to this process are taken: by another receiver when the settings change."""

    receiver: Receiver | None = None


def _reply_of(results: list[Handled]) -> Response:
    """Of a batch: that it is done only when all of it is. What is to come again counts most."""
    if len(results) == 1:
        return results[0].result.response
    for standing in ("again", "failed"):
        for each in results:
            if each.result.standing == standing:
                return each.result.response
    told = [
        {"identifier": each.item.identifier, "verdict": each.result.verdict} for each in results
    ]
    return ok(json_of({"status": "done", "items": told}))
