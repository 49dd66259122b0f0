"""A handler of a Restate service as an upstream: called through the ingress, and what comes back is
told as any service would tell it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from oncekey.core.errors import OnceKeyError, UpstreamError, UpstreamUnreachable
from oncekey.core.model import Headers
from oncekey.edge.services.answers import cleaned, read_failure
from oncekey.edge.services.place import ServicePlace, Target
from oncekey.stores.restate.admin import Admin
from oncekey.upstream import Body, Listener, Upstream
from oncekey.upstream.address import Address
from oncekey.wire.headers import KEY
from oncekey.wire.listed import listed

_METHOD = b"POST"
_REFUSED = 400
_MOST_FAILURE = 64 << 10
_PURGE_TIMEOUT = 2.0
_EXPIRES, _ID = b"idempotency-expires", b"x-restate-id"

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[bytes, Headers]).decode


class ServiceNodes:
    """The nodes that are asked for one service. Belongs to one event loop."""

    def __init__(self, place: ServicePlace, names: frozenset[bytes], **options: Any) -> None:
        self.place = place
        self.names = names
        self.nodes = [Upstream(url, **options) for url in place.ingress]
        self.admin = Admin(place.admin)

    def at(self, path: str) -> ServiceUpstream:
        """For the route of that path."""
        return ServiceUpstream(self, Target(self.place, path))

    async def close(self, grace: float = 0.0) -> None:
        for each in self.nodes:
            await each.close(grace)
        await self.admin.close()


class ServiceUpstream:
    """`anew`: an answer that Restate remembers from before is not one to this request; it is
    forgotten there, and the handler called."""

    tells = frozenset({b"x-operation-id"})
    """The line by which a request without a key can be spoken of."""

    def __init__(self, service: ServiceNodes, target: Target, *, anew: bool = False) -> None:
        self._service = service
        self._target = target
        self._anew = anew

    @property
    def address(self) -> Address:
        return self._service.nodes[0].address

    @property
    def longest(self) -> float:
        return self._service.nodes[0].longest

    def renewing(self) -> ServiceUpstream:
        return ServiceUpstream(self._service, self._target, anew=True)

    def start(self, method: bytes, target: bytes, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
        """What many requests have in common, for `ask_from`."""
        return _encode(self._request(target, headers))

    def ask(
        self,
        method: bytes,
        target: bytes,
        headers: Sequence[tuple[bytes, bytes]],
        body: Body,
        listener: Listener,
        *,
        timeout: float | None = None,
        length: int | None = None,
    ) -> ServiceAsk:
        asked = self._request(target, headers)
        return ServiceAsk(self._service, asked, body, listener, anew=self._anew, length=length)

    def ask_from(
        self,
        method: bytes,
        start: bytes,
        headers: Sequence[tuple[bytes, bytes]],
        body: Body,
        listener: Listener,
    ) -> ServiceAsk:
        target, lines = _decode(start)
        asked = target, lines + listed(headers, self._service.names)
        return ServiceAsk(self._service, asked, body, listener, anew=self._anew)

    def _request(
        self, target: bytes, headers: Iterable[tuple[bytes, bytes]]
    ) -> tuple[bytes, Headers]:
        """Restate keeps what it is sent: only what is listed goes there."""
        lines = listed(headers, self._service.names)
        return self._target.of(target, dict(lines)), lines


class ServiceAsk:
    """A call under way: a listener to the node that has it, and a handle for whoever asked."""

    def __init__(
        self,
        service: ServiceNodes,
        asked: tuple[bytes, Headers],
        body: Body,
        listener: Listener,
        *,
        anew: bool,
        length: int | None = None,
    ) -> None:
        self._service = service
        self._target, self._lines = asked
        self._keyed = any(name == KEY for name, _ in self._lines)
        self._body = body
        self._length = length
        self._listener = listener
        self._anew = anew
        self._node = 0
        self._failure: tuple[int, Headers, list[bytes]] | None = None
        self._beside: asyncio.Task[None] | None = None
        self._over = False
        self._ask = self._sent()

    # -- for whoever asked -----------------------------------------------------------------

    @property
    def connection(self) -> Any:
        return self._ask.connection

    def pause(self) -> None:
        self._ask.pause()

    def resume(self) -> None:
        self._ask.resume()

    def abandon(self) -> None:
        self._over = True
        if self._beside is not None:
            self._beside.cancel()
        self._ask.abandon()

    def _sent(self) -> Any:
        node = self._service.nodes[self._node]
        return node.ask(_METHOD, self._target, self._lines, self._body, self, length=self._length)

    # -- what the node tells ---------------------------------------------------------------

    def whole(self, status: int, headers: Headers, body: bytes) -> None:
        if self._is_old(headers):
            self._renew(headers)
        elif status >= _REFUSED:
            self._fail(status, headers, body)
        else:
            self._listener.whole(status, cleaned(headers, keyed=self._keyed), body)

    def began(self, status: int, headers: Headers) -> None:
        if status >= _REFUSED or self._is_old(headers):
            self._failure = (status, headers, [])
        else:
            self._listener.began(status, cleaned(headers, keyed=self._keyed))

    def chunk(self, data: bytes) -> None:
        if self._failure is None:
            self._listener.chunk(data)
        elif sum(map(len, self._failure[2])) < _MOST_FAILURE:
            self._failure[2].append(data)

    def ended(self) -> None:
        if self._failure is None:
            self._listener.ended()
        else:
            status, headers, pieces = self._failure
            self._failure = None
            self.whole(status, headers, b"".join(pieces))

    def failed(self, error: UpstreamError) -> None:
        more = self._node + 1 < len(self._service.nodes)
        if isinstance(error, UpstreamUnreachable) and more and isinstance(self._body, bytes):
            self._node += 1
            self._ask = self._sent()
        else:
            self._listener.failed(error)

    def _fail(self, status: int, headers: Headers, body: bytes) -> None:
        told = read_failure(status, headers, body)
        if isinstance(told, UpstreamError):
            self._listener.failed(told)
            return
        marks = cleaned(headers, keyed=self._keyed, only_marks=True)
        self._listener.whole(told.status, told.headers + marks, told.body)

    # -- what Restate remembers ------------------------------------------------------------

    def _is_old(self, headers: Headers) -> bool:
        """Whether it answers as it did before. It says when it will forget only then."""
        return self._anew and self._keyed and any(name == _EXPIRES for name, _ in headers)

    def _renew(self, headers: Headers) -> None:
        self._anew = False
        self._beside = asyncio.get_running_loop().create_task(self._call_again(headers))

    async def _call_again(self, headers: Headers) -> None:
        id_ = dict(headers).get(_ID, b"").decode("ascii")
        try:
            await self._service.admin.ask(
                "PATCH", f"/invocations/{id_}/purge", patience=_PURGE_TIMEOUT
            )
        except OnceKeyError as error:
            # Nothing was run for this request, and an answer to another is none to it.
            message = f"Restate remembers an answer that is over, and cannot be told: {error}"
            self._listener.failed(UpstreamUnreachable(message))
            return
        if not self._over:
            self._ask = self._sent()
