"""Django's requests and responses, and what the wire makes of them.

A request is handed on unread by putting its stream back, for which Django has no public way.
"""
# ruff: noqa: SLF001

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from io import BytesIO
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase

from oncekey.core.errors import ConfigurationError
from oncekey.core.model import Headers, Kind, Outcome
from oncekey.integrations.environ import read
from oncekey.wire.body import Body
from oncekey.wire.exchange import Request, endpoint_of, outcome_of
from oncekey.wire.headers import Lines
from oncekey.wire.problem import Response, problem
from oncekey.wire.rule import Rule

_CHUNK = 64 << 10
_CAPTURED = "_oncekey_body"
_FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")


def request_of(request: Any, lines: Lines, body: Body) -> Request:
    query = request.META.get("QUERY_STRING", "").encode("utf-8", "surrogateescape")
    path = request.path.encode("utf-8", "surrogatepass")
    return Request(request.method, path, query, lines.content_type, body)


def endpoint_of_request(request: Any) -> str:
    """The method and the route as the URL configuration writes it; the path where there is none."""
    match = request.resolver_match
    return endpoint_of(request.method, f"/{match.route}" if match else request.path)


def place_of_request(request: Any) -> str:
    """The same for those who count: paths that no route names are all one to them."""
    if request.resolver_match:
        return endpoint_of_request(request)
    return f"{request.method} {{path}}"


def capture(request: Any, rule: Rule) -> Body | Response:
    """The body, read once and handed on: whoever reads the request next finds it unread."""
    known: Body | None = request.__dict__.get(_CAPTURED)
    if known is not None:
        return known
    body = _read(request, rule.max_request_body)
    if isinstance(body, Body):
        request.__dict__[_CAPTURED] = body
    return body


def _read(request: Any, limit: int) -> Body | Response:
    content_type = request.META.get("CONTENT_TYPE", "").encode("latin-1")
    if hasattr(request, "_body"):
        return _fed(Body(content_type, limit), [request._body])
    if request._read_started:
        # Two forms compare by their fields, whatever bytes they came in.
        return _fed(Body(b"", limit), _form_of(request))
    if "wsgi.input" in request.META:
        body = read(request.META, content_type, limit)
        request._stream = request.META["wsgi.input"]
        return body
    body = _fed(Body(content_type, limit), iter(partial(request.read, _CHUNK), b""))
    if isinstance(body, Body):
        request._stream, request._read_started = _stream_of(body), False
    return body


def _fed(body: Body, chunks: Iterable[bytes]) -> Body | Response:
    for chunk in chunks:
        if not body.feed(chunk):
            body.close()
            return problem("request-too-large")
    return body


def _form_of(request: Any) -> Iterator[bytes]:
    """A form whose bytes are gone, because somebody before us parsed it."""
    if request.content_type not in _FORMS or not hasattr(request, "_post"):
        raise ConfigurationError(
            "the request's body was read before its view was called, so that it cannot be compared "
            "with that of a retry; read request.body instead, or use IdempotentMixin"
        )
    yield json.dumps(sorted(request.POST.lists())).encode()
    for name, files in sorted(request.FILES.lists()):
        for file in files:
            yield json.dumps([name, file.name, file.content_type, file.size]).encode()
            yield from file.chunks()
            file.seek(0)


def _stream_of(body: Body) -> Any:
    content = body.content
    return BytesIO(content) if isinstance(content, bytes) else body.open()


def forget_body(request: Any, response: Any) -> None:
    """Close the body with the request, or with the answer that may still read from it."""
    body: Body | None = request.__dict__.pop(_CAPTURED, None)
    if body is None:
        return
    if getattr(response, "streaming", False):
        response._resource_closers.append(body.close)
    else:
        body.close()


def headers_of(response: HttpResponseBase) -> Headers:
    """Without cookies: Django keeps those apart from the headers, and so they are never stored."""
    return tuple([(n.encode("latin-1"), v.encode("latin-1")) for n, v in response.items()])


def outcome_of_response(response: Any, rule: Rule) -> Outcome:
    """What is kept of an answer."""
    if response.streaming:
        return Outcome(Kind.UNKEPT, response.status_code)
    return outcome_of(response.status_code, headers_of(response), response.content, rule)


def django_response(answer: Response) -> HttpResponse:
    """An answer of the ledger's, as a response."""
    response = HttpResponse(answer.body, status=answer.status)
    del response["Content-Type"]
    return mark(response, answer.headers)


def mark(response: Any, headers: Headers) -> Any:
    """Add headers; Django has one line of each, so that repeated ones are joined."""
    for name, value in headers:
        known, text = name.decode("latin-1"), value.decode("latin-1")
        response[known] = f"{response[known]}, {text}" if known in response else text
    return response
