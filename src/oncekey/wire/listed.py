"""The lines of a request that may be kept by whoever carries it: none that lets anybody in."""

from __future__ import annotations

from collections.abc import Iterable

from oncekey.core.model import Headers
from oncekey.wire.headers import KEY, REQUEST_ID

LISTED = frozenset(
    {
        KEY,
        REQUEST_ID,
        b"accept",
        b"accept-charset",
        b"accept-encoding",
        b"accept-language",
        b"content-digest",
        b"content-encoding",
        b"content-language",
        b"content-type",
        b"if-match",
        b"if-modified-since",
        b"if-none-match",
        b"if-unmodified-since",
        b"prefer",
        b"traceparent",
        b"tracestate",
        b"user-agent",
        b"x-correlation-id",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-proto",
        b"x-project-id",
        b"x-subject",
        b"x-tenant-id",
    }
)


def listed(lines: Iterable[tuple[bytes, bytes]], names: frozenset[bytes]) -> Headers:
    return tuple([pair for pair in lines if pair[0] in names])
