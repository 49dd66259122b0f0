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


def nothing(lines: Headers) -> Response:
    """All there is to say is in the lines."""
    return Response(OK, ((b"content-length", b"0"), (b"cache-control", b"no-store"), *lines), b"")


def in_flight(operation_id: str) -> Response:
    """It is being run; ask again later."""
    body = b'{"operation_id": "%b", "state": "in_progress"}' % operation_id.encode()
    marks = ((b"x-operation-id", operation_id.encode()), (b"retry-after", b"1"))
    return _reply(ACCEPTED, body, marks)


def _reply(status: int, body: bytes, others: Headers) -> Response:
    headers = (
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *others,
    )
    return Response(status, headers, body)
