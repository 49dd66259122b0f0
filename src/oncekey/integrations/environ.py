"""A WSGI request as `wire` wants it: the lines that matter, path and body out of an `environ`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oncekey.wire.body import Body
from oncekey.wire.exchange import Request
from oncekey.wire.headers import KEY, REQUEST_ID, Lines, lines_of
from oncekey.wire.problem import Response, problem

Environ = dict[str, Any]

CLAIM = "oncekey.claim"
_CHUNK = 64 << 10
_NAMES = {
    "CONTENT_TYPE": b"content-type",
    "HTTP_X_REQUEST_ID": REQUEST_ID,
    "HTTP_AUTHORIZATION": b"authorization",
    "HTTP_X_API_KEY": b"x-api-key",
    "HTTP_COOKIE": b"cookie",
}


def lines_in(environ: Environ) -> Lines:
    return lines_of(_pairs_in(environ))


def _pairs_in(environ: Environ) -> Iterator[tuple[bytes, bytes]]:
    key = environ.get("HTTP_IDEMPOTENCY_KEY")
    if key is not None:
        # Servers join repeated lines with commas, which no key can hold.
        for line in key.split(","):
            yield KEY, line.encode("latin-1")
    for variable, name in _NAMES.items():
        value = environ.get(variable)
        if value:
            yield name, value.encode("latin-1")


def path_in(environ: Environ) -> bytes:
    """The whole path as the client wrote it, percent-decoded by the server."""
    path: str = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    return path.encode("latin-1")


def request_in(environ: Environ, content_type: bytes, body: Body) -> Request:
    query = environ.get("QUERY_STRING", "").encode("latin-1")
    return Request(environ["REQUEST_METHOD"], path_in(environ), query, content_type, body)


def read(environ: Environ, content_type: bytes, limit: int) -> Body | Response:
    """The body whole, and once more in place for the app; else the answer that refuses it."""
    body = Body(content_type, limit)
    given = environ.get("CONTENT_LENGTH") or ""
    if given and not given.isdecimal():
        return problem("request-incomplete")
    length = int(given) if given else None
    if length is None and not environ.get("wsgi.input_terminated"):
        length = 0
    if (length or 0) > limit or not _feed(body, environ["wsgi.input"], length):
        body.close()
        return problem("request-too-large")
    if body.size < (length or 0):
        body.close()
        return problem("request-incomplete")
    _put_back(environ, body)
    return body


def _feed(body: Body, stream: Any, length: int | None) -> bool:
    """False when the body is larger than allowed. A `length` of None reads to the end."""
    while length is None or body.size < length:
        wanted = _CHUNK if length is None else min(_CHUNK, length - body.size)
        chunk = stream.read(wanted)
        if not chunk:
            return True
        if not body.feed(chunk):
            return False
    return True


def _put_back(environ: Environ, body: Body) -> None:
    environ["wsgi.input"] = body.open()
    environ["wsgi.input_terminated"] = True
    if body.size or "CONTENT_LENGTH" in environ:
        # Frameworks that know nothing of chunked requests read by this length.
        environ["CONTENT_LENGTH"] = str(body.size)
    environ.pop("HTTP_TRANSFER_ENCODING", None)
