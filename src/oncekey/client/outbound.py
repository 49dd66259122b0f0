"""Calls made inside of an operation, each with a key derived from it: whoever is called can tell
a retry from another call, because every attempt of the operation sends the same keys."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, TypeVar

import httpx

from oncekey.client.errors import OutsideOperation
from oncekey.core.claim import Claim
from oncekey.core.current import outgoing, within
from oncekey.core.errors import ConfigurationError
from oncekey.core.key import check_name
from oncekey.core.outgoing import Outgoing, Place

Existing = Literal["auto", "keep", "replace"]
C = TypeVar("C")

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
# The service has not done it, or is doing it still.
_NOT_FOR_GOOD = frozenset({401, 403, 407, 408, 409, 425, 429})
_NAMED = "oncekey"
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch
_LONGEST_SECRET = 64
_SITE: ContextVar[str] = ContextVar("oncekey-site", default="")


class Naming:
    """How calls are named. Common to both transports."""

    def __init__(
        self,
        *,
        header: str = "Idempotency-Key",
        existing: Existing = "auto",
        secret: str | bytes = b"",
        outside: Literal["pass", "refuse"] = "pass",
    ) -> None:
        if existing not in {"auto", "keep", "replace"} or outside not in {"pass", "refuse"}:
            raise ConfigurationError(
                "existing is 'auto', 'keep' or 'replace', and outside is 'pass' or 'refuse'"
            )
        self._header = header
        self._existing = existing
        self._secret = secret.encode() if isinstance(secret, str) else secret
        if len(self._secret) > _LONGEST_SECRET:
            raise ConfigurationError(
                f"a secret for outbound keys has {_LONGEST_SECRET} bytes at most"
            )
        self._outside = outside

    def name(self, request: httpx.Request) -> Named | None:
        """Give the request its key; None for one that has none, or brings its own."""
        if request.method in _SAFE:
            return None
        named: Named | None = request.extensions.get(_NAMED)
        if named is not None:
            # Sent again by httpx itself, with credentials that it was asked for.
            return named
        brought = request.headers.get(self._header, "")
        if brought and not self._gives_way(request, brought):
            return None
        calls = outgoing()
        if calls is None:
            if self._outside == "refuse":
                raise OutsideOperation
            return None
        place = calls.place(_site_of(request), _digest_of(request), brought)
        request.headers[self._header] = calls.key(place, self._secret)
        named = request.extensions[_NAMED] = Named(calls, place)
        return named

    def _gives_way(self, request: httpx.Request, brought: str) -> bool:
        """Stripe's library draws a random key for every call that was given none."""
        if self._existing == "auto":
            stripes = "stripe" in request.headers.get("user-agent", "").lower()
            return stripes and _UUID(brought) is not None
        return self._existing == "replace"


class Named(NamedTuple):
    """A call on its way."""

    calls: Outgoing
    place: Place

    def answered(self, response: httpx.Response, body: type[Body | AsyncBody]) -> None:
        """Its head is there; what comes of the rest is seen when it is read."""
        if response.status_code >= 500 or response.status_code in _NOT_FOR_GOOD:
            self.lost()
        else:
            response.stream = body(response.stream, self)

    def lost(self) -> None:
        self.calls.lost(self.place)


class Body(httpx.SyncByteStream):
    """The body of an answer. One that breaks off is no answer."""

    def __init__(self, stream: Any, named: Named) -> None:
        self._stream = stream
        self._named = named

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._stream
        except httpx.TransportError:
            self._named.lost()
            raise

    def close(self) -> None:
        self._stream.close()


class AsyncBody(httpx.AsyncByteStream):
    """The same for `httpx.AsyncClient`."""

    def __init__(self, stream: Any, named: Named) -> None:
        self._stream = stream
        self._named = named

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                yield chunk
        except httpx.TransportError:
            self._named.lost()
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()


class IdempotentTransport(httpx.BaseTransport):
    """For `httpx.Client(transport=IdempotentTransport())`; `transport` is what carries the calls.

    `existing` says what becomes of a key that a request brings: `keep` it, `replace` it, or `auto`:
    keep it, except for the random ones of Stripe's library. `secret` makes keys that nobody can
    guess who knows how they are derived. `outside="refuse"` raises where there is no operation.
    """

    def __init__(self, transport: httpx.BaseTransport | None = None, **naming: Any) -> None:
        self._transport = httpx.HTTPTransport() if transport is None else transport
        self._naming = Naming(**naming)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        named = self._naming.name(request)
        if named is None:
            return self._transport.handle_request(request)
        try:
            response = self._transport.handle_request(request)
        except BaseException:
            named.lost()
            raise
        named.answered(response, Body)
        return response

    def close(self) -> None:
        self._transport.close()


class AsyncIdempotentTransport(httpx.AsyncBaseTransport):
    """The same for `httpx.AsyncClient`."""

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None, **naming: Any) -> None:
        self._transport = httpx.AsyncHTTPTransport() if transport is None else transport
        self._naming = Naming(**naming)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        named = self._naming.name(request)
        if named is None:
            return await self._transport.handle_async_request(request)
        try:
            response = await self._transport.handle_async_request(request)
        except BaseException:
            named.lost()
            raise
        named.answered(response, AsyncBody)
        return response

    async def aclose(self) -> None:
        await self._transport.aclose()


def derived_key(name: str, *, secret: str | bytes = b"") -> str:
    """A key for a call that httpx does not make: the same for `name` at every attempt."""
    calls = outgoing()
    if calls is None:
        raise OutsideOperation
    hidden = secret.encode() if isinstance(secret, str) else secret
    return calls.key(Place(f"name:{check_name(name)}", 1, b""), hidden)


@contextmanager
def call(name: str) -> Iterator[None]:
    """Name the calls made inside, in place of method and address: for those of one kind that an
    attempt may make in another order, or leave out. Each name counts by itself; names inside of
    names are joined."""
    token = _SITE.set("/".join(filter(None, (_SITE.get(), check_name(name)))))
    try:
        yield
    finally:
        _SITE.reset(token)


def inside(claim: Claim) -> AbstractContextManager[None]:
    """For code that begins its operations by itself: the calls inside are those of `claim`."""
    return within(claim)


def protect(client: C, **naming: Any) -> C:
    """Let an existing client send derived keys: one of httpx, or `stripe.HTTPXClient()`, whose
    own httpx clients cannot be given a transport. Answers the client."""
    found = [client, getattr(client, "_client", None), getattr(client, "_client_async", None)]
    clients = [each for each in found if isinstance(each, httpx.Client | httpx.AsyncClient)]
    if not clients:
        raise ConfigurationError(
            "protect() takes httpx.Client, httpx.AsyncClient or stripe.HTTPXClient, "
            f"not {type(client).__name__}"
        )
    for each in clients:
        each._transport = _around(each._transport, naming)  # noqa: SLF001 - httpx has no other way
        mounts: dict[Any, Any] = each._mounts  # noqa: SLF001
        for pattern, mounted in mounts.items():
            mounts[pattern] = mounted and _around(mounted, naming)
    return client


def _around(transport: Any, naming: dict[str, Any]) -> Any:
    if isinstance(transport, IdempotentTransport | AsyncIdempotentTransport):
        return transport
    if isinstance(transport, httpx.AsyncBaseTransport):
        return AsyncIdempotentTransport(transport, **naming)
    return IdempotentTransport(transport, **naming)


def _site_of(request: httpx.Request) -> str:
    """What the call is for. Neither query nor body count: what differs between two attempts is
    to be refused by whoever is called, not taken for another call."""
    if named := _SITE.get():
        return f"call:{named}"
    url = request.url
    return f"{request.method} {url.scheme}://{url.netloc.decode('ascii')}{url.path}"


def _digest_of(request: httpx.Request) -> bytes:
    try:
        content = request.content
    except httpx.RequestNotRead:
        # A stream cannot be sent again.
        return b""
    return blake2b(content, digest_size=16).digest()
