"""What Restate's ingress answers, read: the outcome of a handler, or a refusal of its own."""

from __future__ import annotations

import msgspec

from oncekey.core.errors import UpstreamError, UpstreamUncertain, UpstreamUnreachable
from oncekey.core.model import Headers
from oncekey.wire.problem import Response, failed_in_service, problem

_SOURCE, _ID = b"x-restate-error-source", b"x-restate-id"
# About the ingress itself, and who may read it in a browser.
_OF_INGRESS = (b"x-restate-", b"access-control-", b"vary")
_BAD_REQUEST, _TOO_LARGE, _BROKEN = 400, 413, 500
_NOT_TAKEN = (
    "The service behind does not take a request of this kind. Check its Content-Type, and whether "
    "it is to have a body."
)


class _Told(msgspec.Struct):
    message: str = ""


_told_in = msgspec.json.Decoder(_Told).decode


def cleaned(headers: Headers, *, keyed: bool, only_marks: bool = False) -> Headers:
    """The lines that are the handler's. The id of a call is told where there is no other: what has
    a key is known by the number of its operation."""
    lines = [] if only_marks else [p for p in headers if not p[0].startswith(_OF_INGRESS)]
    if not keyed:
        lines += [(b"x-operation-id", value) for name, value in headers if name == _ID]
    return tuple(lines)


def read_failure(status: int, headers: Headers, body: bytes) -> Response | UpstreamError:
    """How the handler ended, or why it was not called: the request is at fault, or Restate."""
    if dict(headers).get(_SOURCE) == b"invocation":
        return failed_in_service(status, _message_in(body))
    if status == _BAD_REQUEST:
        return problem("invalid-input", _NOT_TAKEN)
    if status == _TOO_LARGE:
        return problem("request-too-large")
    shown = f"{status} {_message_in(body)[:200]}"
    if status < _BROKEN:
        return UpstreamUnreachable(f"Restate did not call the service: {shown}")
    # It may have been called before the way back was lost.
    return UpstreamUncertain(f"Restate does not say how the call ended: {shown}")


def _message_in(body: bytes) -> str:
    """What the handler said, and nothing of where it said it."""
    try:
        return _told_in(body).message
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
