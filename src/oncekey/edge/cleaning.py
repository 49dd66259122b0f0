"""Headers on their way through: what belongs to one connection, to the edge or to the service
behind stays on its side."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from oncekey.core.model import Headers
from oncekey.edge.asked import Asked, Pairs
from oncekey.edge.identity.gateway import Gateway
from oncekey.edge.origin import PLACES, Origin, without
from oncekey.edge.rewrite import IDENTITY_HEADERS, PROJECT, SUBJECT, TENANT
from oncekey.wire.headers import HOP_BY_HOP

# Framing and host are written anew for each connection; forwarding is told by whoever forwards.
# Some services believe the last few: then another request is run than the one that was let in.
_REQUEST_ONLY = frozenset(
    {
        b"content-length",
        b"expect",
        b"forwarded",
        b"host",
        b"idempotency-key",
        # To a service that takes headers as CGI variables, where it sends its own requests.
        b"proxy",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-proto",
        b"x-http-method",
        b"x-http-method-override",
        b"x-method-override",
        b"x-original-url",
        b"x-rewrite-url",
    }
)
# What only a gateway knows of those before it: where they come from, what they asked it for, and
# who they are. Services behind one believe some of these, and would believe them from anybody.
_OF_GATEWAYS = frozenset(
    {
        b"cf-connecting-ip",
        b"fastly-client-ip",
        b"remote-user",
        b"true-client-ip",
        b"x-auth-request-email",
        b"x-auth-request-groups",
        b"x-auth-request-user",
        b"x-client-ip",
        b"x-cluster-client-ip",
        b"x-envoy-external-address",
        b"x-forwarded-client-cert",
        b"x-forwarded-email",
        b"x-forwarded-groups",
        b"x-forwarded-method",
        b"x-forwarded-path",
        b"x-forwarded-port",
        b"x-forwarded-prefix",
        b"x-forwarded-scheme",
        b"x-forwarded-server",
        b"x-forwarded-ssl",
        b"x-forwarded-uri",
        b"x-forwarded-user",
        b"x-original-host",
        b"x-original-method",
        b"x-original-uri",
        b"x-real-ip",
        b"x-remote-user",
        b"x-ssl-client-cert",
        b"x-ssl-client-verify",
    }
)


def _spellings(name: bytes) -> list[bytes]:
    """Services that take headers as CGI variables read an underscore in a name as a dash."""
    first, *others = name.split(b"-")
    found = [first]
    for part in others:
        found = [each + sign + part for each in found for sign in (b"-", b"_")]
    return found


@lru_cache(maxsize=16)
def _staying(more: frozenset[bytes] = frozenset()) -> frozenset[bytes]:
    names = HOP_BY_HOP | _REQUEST_ONLY | IDENTITY_HEADERS | more
    return frozenset(spelling for name in names for spelling in _spellings(name))


_STAYS_HERE = _staying(_OF_GATEWAYS)
# Ours to tell, or nobody's business: which software and which hosts there are behind.
_STAYS_BEHIND = frozenset(
    {
        b"date",
        b"idempotency-expires",
        b"idempotency-stored",
        b"idempotent-replayed",
        b"original-request-id",
        b"server",
        b"via",
        b"x-operation-id",
        b"x-powered-by",
        b"x-restate-id",
    }
)
_CREDENTIALS = frozenset({b"authorization", b"x-api-key"})
# An API key is for the edge alone; a token may mean something to the service behind.
_TOKEN = re.compile(rb"(?i:bearer) +[\w-]+\.[\w-]+\.[\w-]+ *").fullmatch
_OUR_KEY = re.compile(rb"(?i:bearer +)?oka?_").match


def to_upstream(
    asked: Asked, namespace: str, key: str | None, gateway: Gateway | None = None
) -> Pairs:
    """The lines of a request for the service behind. What a trusted `gateway` tells of those before
    it is handed on."""
    trusted = gateway is not None and gateway.trusts(asked.peer)
    dropped = _STAYS_HERE
    if gateway is not None:
        dropped = _staying(gateway.headers if trusted else _OF_GATEWAYS | gateway.headers)
    cleaned: Pairs = []
    host = b""
    for name, value in asked.headers:
        if name not in dropped:
            if name in _CREDENTIALS and not _passes(value, trusted=trusted):
                continue
            cleaned.append((name, value))
        elif name == b"host":
            host = value
        elif name == b"connection" and value.lower() not in {b"keep-alive", b"close"}:
            # It may name others that are for this connection only, also ones that came before.
            named = _listed(value)
            dropped = dropped | named
            cleaned = [pair for pair in cleaned if pair[0] not in named]
    if key is not None:
        cleaned.append((b"idempotency-key", key.encode("ascii")))
    cleaned += lines_of_identity(namespace)
    if trusted:
        return cleaned + _forwarded(asked, host)
    if asked.peer:
        cleaned.append((b"x-forwarded-for", asked.peer.encode()))
    cleaned += ((b"x-forwarded-host", host), (b"x-forwarded-proto", asked.scheme.encode()))
    return cleaned


def _passes(credential: bytes, *, trusted: bool) -> bool:
    """Of a gateway's request, only our own keys stay here: it was the gateway that we believed."""
    return not _OUR_KEY(credential) if trusted else _TOKEN(credential) is not None


@lru_cache(maxsize=4096)
def lines_of_identity(namespace: str) -> Headers:
    """Who calls, as the service behind is told. The subject is percent-encoded as in keys."""
    tenant, project, subject = namespace.removeprefix("t-").split(":", 2)
    return (
        (TENANT, tenant.encode("ascii")),
        (PROJECT, project.encode("ascii")),
        (SUBJECT, subject.encode("ascii")),
    )


def from_upstream(
    headers: Iterable[tuple[bytes, bytes]], origin: Origin, ours: frozenset[bytes] = frozenset()
) -> Headers:
    """The lines of an answer for the client. `origin` is where the service behind is; `ours` are
    lines that it tells in the name of the edge."""
    staying = _STAYS_BEHIND - ours if ours else _STAYS_BEHIND
    cleaned: Pairs = []
    for name, value in headers:
        if name in staying:
            continue
        if name in PLACES:
            value = without(origin, value)  # noqa: PLW2901
        cleaned.append((name, value))
    return tuple(cleaned)


def _forwarded(asked: Asked, host: bytes) -> Pairs:
    """What a gateway says of those before it, with itself as the last of them."""
    told = dict(asked.headers)
    before = [value for name, value in asked.headers if name == b"x-forwarded-for"]
    return [
        (b"x-forwarded-for", b", ".join([*before, asked.peer.encode()])),
        (b"x-forwarded-host", told.get(b"x-forwarded-host", host)),
        (b"x-forwarded-proto", told.get(b"x-forwarded-proto", asked.scheme.encode())),
    ]


def _listed(value: bytes) -> frozenset[bytes]:
    return frozenset(part.strip().lower() for part in value.split(b","))
