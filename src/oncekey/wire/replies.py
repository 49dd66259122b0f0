"""Answers of the API that are no problems: JSON, and the statuses there are for success."""

from __future__ import annotations

from oncekey.core.model import Headers
from oncekey.wire.headers import REPLAYED
from oncekey.wire.problem import Response

OK, CREATED, ACCEPTED = 200, 201, 202


def ok(body: bytes, *, replayed: bool = False) -> Response:
    return _reply(OK, body, ((REPLAYED, b"true"),) if replayed else ())


def created(body: bytes, location: str) -> Response:
    """`location` is the path of what was made, percent-encoded."""
    return _reply(CREATED, body, ((b"location", location.encode("ascii")),))


def accepted(body: bytes, *, replayed: bool = False) -> Response:
    return _reply(ACCEPTED, body, ((REPLAYED, b"true"),) if replayed else ())


def _reply(status: int, body: bytes, others: Headers) -> Response:
    headers = (
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *others,
    )
    return Response(status, headers, body)
