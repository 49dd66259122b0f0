"""Where providers deliver: a path for each webhook, which says nothing about whose it is."""

from __future__ import annotations

import re
from time import perf_counter

from oncekey.core.errors import OnceKeyError
from oncekey.edge.asked import Asked
from oncekey.edge.policy import EdgeRoute
from oncekey.edge.reading import Reading
from oncekey.webhooks.naming import place_of
from oncekey.webhooks.receiver import Incoming, Receiver
from oncekey.webhooks.sources import Source
from oncekey.webhooks.then import Forward
from oncekey.wire.body import Body
from oncekey.wire.problem import Response, not_allowed, problem, problem_of

WEBHOOKS = "/api/v1/webhooks/"

_PATH = re.compile(rf"{WEBHOOKS}([a-z0-9][a-z0-9_-]{{0,63}})/(wh_[A-Za-z0-9_-]{{1,128}})")
# Twilio asks with GET where that is chosen.
_METHODS = frozenset({"POST", "GET"})


class Hooks:
    def __init__(self, receiver: Receiver, max_body: int) -> None:
        self._receiver = receiver
        self._max_body = max_body

    async def receive(self, asked: Asked, reading: Reading) -> Response:
        """A delivery at its own path."""
        found = _PATH.fullmatch(asked.path)
        if found is None or not self._receiver.knows(found[1]):
            return problem("not-found")
        if asked.method not in _METHODS:
            return not_allowed(_METHODS)
        try:
            source = await self._find(found[1], found[2], place_of(found[1]))
            if source is None:
                return problem("not-found")
            return await self._received(source, asked, reading)
        except OnceKeyError as error:
            return problem_of(error)

    async def receive_at(self, route: EdgeRoute, asked: Asked, reading: Reading) -> Response:
        """A delivery at the path of a route, which it is forwarded to."""
        try:
            source = await self._find(None, route.source, route.place(asked.method))
            if source is None:
                return problem("not-found")
            follows = source._replace(then=Forward(asked.path))
            return await self._received(follows, asked, reading)
        except OnceKeyError as error:
            return problem_of(error)

    async def _find(self, provider: str | None, webhook: str, place: str) -> Source | None:
        """Where it cannot be looked up nobody knows whose it is, but that it came is told."""
        began = perf_counter()
        try:
            return await self._receiver.lookup(provider, webhook)
        except OnceKeyError as error:
            self._receiver.lose(place, problem_of(error).status, began)
            raise

    async def _received(self, source: Source, asked: Asked, reading: Reading) -> Response:
        body = await reading.whole(self._max_body)
        if isinstance(body, Response):
            return body
        if isinstance(body, Body):
            with body.open() as file:
                body = file.read()
        incoming = Incoming(
            asked.method, asked.raw_path, asked.query, tuple(asked.headers), asked.scheme, body
        )
        return await self._receiver.receive(source, incoming)
