"""A request as an intent keeps it: read to its end, and without what lets the caller in."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import httpx

from oncekey.client.answer import Lines
from oncekey.client.dialect import Dialect
from oncekey.client.intents import Frozen
from oncekey.client.sending import Send
from oncekey.core.errors import InvalidInput, PayloadTooLarge
from oncekey.wire.fingerprint import Fingerprint

LARGEST_BODY = 8 << 20

_TAKEN = ("json", "data", "files", "content", "params", "headers")
_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_CREDENTIALS = frozenset(
    {
        "authorization",
        "cookie",
        "proxy-authorization",
        "x-api-key",
        "x-auth-token",
        "x-csrf-token",
        "x-csrftoken",
        "x-xsrf-token",
    }
)
# httpx makes them anew for each attempt, or they belong to the client.
_MADE_ANEW = frozenset({"host", "content-length", "transfer-encoding", "connection"})
_SHORTEST = 0.1
_fingerprint = Fingerprint()

Http = httpx.Client | httpx.AsyncClient


def freeze(http: Http, dialect: Dialect, method: str, url: str, content: dict[str, Any]) -> Frozen:
    """`content` are the arguments of httpx: json, data, files, content, params, headers."""
    verb = method.upper()
    _check(dialect, verb, content)
    request = http.build_request(verb, url, **content)
    _check_origin(http.base_url, request.url)
    if not isinstance(request.stream, httpx.SyncByteStream):
        raise InvalidInput("an intent may be sent more than once: give its body as a whole")
    body = request.read()
    if len(body) > LARGEST_BODY:
        raise PayloadTooLarge(
            f"the body of an intent has {LARGEST_BODY >> 20} MiB at most, not {len(body)} bytes"
        )
    target = _bare(http, request.url, content)
    lines = _own_lines(http, request, content)
    kind = request.headers.get("content-type", "")
    return Frozen(verb, str(target), lines, body, _fingerprint_of(verb, target, lines, kind, body))


def credentials_in(headers: Any) -> Lines:
    """What lets the caller in, for this call only: it is sent, and never kept."""
    lines = httpx.Headers(headers).multi_items()
    return tuple((name, value) for name, value in lines if name in _CREDENTIALS)


def thaw(http: Http, dialect: Dialect, sent: Send) -> httpx.Request:
    """For one attempt; what the client adds, such as credentials, is as it is now."""
    frozen = sent.request
    headers = [*frozen.headers, *sent.credentials]
    if frozen.method not in _SAFE:
        headers.append((dialect.key, sent.key))
    request = http.build_request(
        frozen.method,
        frozen.url,
        headers=headers,
        content=frozen.body or None,
        timeout=_at_most(http.timeout, sent.left),
    )
    target = httpx.URL(frozen.url)
    if http.params:
        target = target.copy_merge_params(http.params)
    if http.base_url.userinfo:
        target = target.copy_with(userinfo=http.base_url.userinfo)
    request.url = target
    return request


def _check(dialect: Dialect, verb: str, content: Mapping[str, Any]) -> None:
    if verb in _SAFE:
        raise InvalidInput(f"{verb} has no effect that could happen twice: use httpx for it")
    others = sorted(set(content) - set(_TAKEN))
    if others:
        raise InvalidInput(
            f"an intent takes {', '.join(_TAKEN)}; give {', '.join(others)} to the client"
        )
    if dialect.key in httpx.Headers(content.get("headers")):
        raise InvalidInput(f"the intent has the {dialect.key}: leave it out of the headers")


def _check_origin(base: httpx.URL, target: httpx.URL) -> None:
    """Whoever is elsewhere must not get what lets the caller in here."""
    origins = [(each.scheme, each.host, each.port) for each in (base, target)]
    if base.host and origins[0] != origins[1]:
        raise InvalidInput(
            f"{target.host} is not {base.host}: make a client for each server that is called"
        )


def _bare(http: Http, target: httpx.URL, content: Mapping[str, Any]) -> httpx.URL:
    """The address without what belongs to the client."""
    given = httpx.QueryParams(content.get("params"))
    for name in http.params:
        if name not in given:
            target = target.copy_remove_param(name)
    return target.copy_with(userinfo=b"")


def _own_lines(http: Http, request: httpx.Request, content: Mapping[str, Any]) -> Lines:
    """What this request has beyond those of the client."""
    given = set(httpx.Headers(content.get("headers")))
    dropped = _CREDENTIALS | _MADE_ANEW
    return tuple(
        (name, value)
        for name, value in request.headers.multi_items()
        if name not in dropped and (name in given or name not in http.headers)
    )


def _fingerprint_of(verb: str, target: httpx.URL, lines: Lines, kind: str, body: bytes) -> bytes:
    place = f"{target.scheme}://{target.netloc.decode()}{target.path}"
    asked = _fingerprint.of(verb, place.encode(), target.query, kind.encode(), body)
    # A boundary is drawn anew each time.
    others = sorted(line for line in lines if line[0] != "content-type")
    return blake2b(asked + repr(others).encode(), digest_size=16).digest()


def _at_most(timeout: httpx.Timeout, left: float) -> httpx.Timeout:
    """As the client has it, and never longer than there is time."""
    limits = {
        name: left if seconds is None else min(seconds, left)
        for name, seconds in timeout.as_dict().items()
    }
    return httpx.Timeout(**{name: max(each, _SHORTEST) for name, each in limits.items()})
