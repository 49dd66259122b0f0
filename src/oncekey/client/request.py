"""A request as an intent keeps it: read to its end, and without what lets the caller in."""

from __future__ import annotations

from typing import Any

import httpx

from oncekey.client.answer import Lines
from oncekey.client.dialect import Dialect
from oncekey.client.intents import Frozen
from oncekey.client.sending import Send
from oncekey.core.errors import InvalidInput, PayloadTooLarge
from oncekey.wire.fingerprint import Fingerprint

LARGEST_BODY = 8 << 20

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key"})
# httpx makes them anew for each attempt, or they belong to the client.
_MADE_ANEW = frozenset({"host", "content-length", "transfer-encoding", "connection"})
_SHORTEST = 0.1
_fingerprint = Fingerprint()


def freeze(
    http: httpx.Client | httpx.AsyncClient,
    dialect: Dialect,
    method: str,
    url: str,
    content: dict[str, Any],
) -> Frozen:
    """`content` are the arguments of httpx: json, data, files, content, params, headers."""
    verb = method.upper()
    if verb in _SAFE:
        raise InvalidInput(f"{verb} has no effect that could happen twice: use httpx for it")
    request = http.build_request(verb, url, **content)
    if not isinstance(request.stream, httpx.SyncByteStream):
        raise InvalidInput("an intent may be sent more than once: give its body as a whole")
    body = request.read()
    if len(body) > LARGEST_BODY:
        raise PayloadTooLarge(
            f"the body of an intent has {LARGEST_BODY >> 20} MiB at most, not {len(body)} bytes"
        )
    kind = request.headers.get("content-type", "").encode()
    target = request.url
    place = (
        f"{target.scheme}://{target.netloc.decode()}{target.raw_path.decode().partition('?')[0]}"
    )
    fingerprint = _fingerprint.of(verb, place.encode(), target.query, kind, body)
    lines = _own_lines(http, dialect, request, content)
    return Frozen(verb, str(target), lines, body, fingerprint)


def thaw(http: httpx.Client | httpx.AsyncClient, dialect: Dialect, sent: Send) -> httpx.Request:
    """For one attempt; what the client adds, such as credentials, is as it is now."""
    frozen = sent.request
    headers = [*frozen.headers]
    if frozen.method not in _SAFE:
        headers.append((dialect.key, sent.key))
    request = http.build_request(
        frozen.method,
        frozen.url,
        headers=headers,
        content=frozen.body or None,
        timeout=_at_most(http.timeout, sent.left),
    )
    # The query is part of the address already, with what the client adds to each.
    request.url = httpx.URL(frozen.url)
    return request


def _at_most(timeout: httpx.Timeout, left: float) -> httpx.Timeout:
    """As the client has it, and never longer than there is time."""
    limits = {
        name: left if seconds is None else min(seconds, left)
        for name, seconds in timeout.as_dict().items()
    }
    return httpx.Timeout(**{name: max(each, _SHORTEST) for name, each in limits.items()})


def _own_lines(
    http: httpx.Client | httpx.AsyncClient,
    dialect: Dialect,
    request: httpx.Request,
    content: dict[str, Any],
) -> Lines:
    """What this request has beyond those of the client."""
    given = {name.lower() for name in httpx.Headers(content.get("headers"))}
    dropped = _CREDENTIALS | _MADE_ANEW | {dialect.key.lower()}
    return tuple(
        (name, value)
        for name, value in request.headers.multi_items()
        if name.lower() not in dropped
        and (name.lower() in given or name.lower() not in http.headers)
    )
