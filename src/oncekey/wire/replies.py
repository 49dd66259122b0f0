"""Answers of the API that are no problems: JSON, and the statuses there are for success."""

from __future__ import annotations

from oncekey.core.model import Headers
from oncekey.wire.headers import REPLAYED
from oncekey.wire.problem import Response

OK, CREATED, ACCEPTED = 200, 201, 202
_SLOW_DOWN, _UNAVAILABLE = 429, 503


def ok(body: bytes, *, replayed: bool = False) -> Response:
    return _reply(OK, body, ((REPLAYED, b"true"),) if replayed else ())


def created(body: bytes, location: str = "") -> Response:
    """`location` is the path of what was made, percent-encoded, where it has one."""
    lines = ((b"location", location.encode("ascii")),) if location else ()
    return _reply(CREATED, body, lines)


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


def plain(body: bytes) -> Response:
    """A few words, and never a page."""
    answer = _reply(OK, body, ((b"x-content-type-options", b"nosniff"),))
    kind = (b"content-type", b"text/plain; charset=utf-8")
    return answer._replace(headers=(kind, *answer.headers[1:]))


def to_provider(status: int, *, final: bool) -> int:
    """The status of a service behind as a provider is to hear it: 200 for done, and nothing that
    makes it drop a delivery that is to come again."""
    if 200 <= status < 300:
        return OK
    return _UNAVAILABLE if not final and status < 500 and status != _SLOW_DOWN else status


def _reply(status: int, body: bytes, others: Headers) -> Response:
    headers = (
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *others,
    )
    return Response(status, headers, body)
