"""What a request holds, as values: a field that cannot be used is refused by its name."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar

import msgspec
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from oncekey.api.grpc.oncekey_pb2 import (
    GetExecutionRequest,
    GetPromiseRequest,
    RejectRequest,
    ResolveRequest,
)
from oncekey.core.errors import InvalidInput
from oncekey.core.retention import MAX_SECONDS
from oncekey.durable.address import Address, ById, ByKey

MAX_PAGE = 200
PAGE = 50

Word = TypeVar("Word", bound=IntEnum)

_decode = msgspec.json.Decoder().decode


def json_in(name: str, text: bytes) -> bytes:
    """The text itself: it is read to see that it is JSON, and kept as it came."""
    if not text:
        return b"null"
    try:
        _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"{name} is not JSON: {error}") from None
    return text


def wait_in(request: GetExecutionRequest | GetPromiseRequest) -> float:
    """Seconds to wait; 0 when that is not asked for."""
    return _seconds_of("wait", request.wait)


def seconds_in(name: str, request: Message) -> float | None:
    """How long something lasts, or None when it is not said."""
    if not request.HasField(name):
        return None
    seconds = _seconds_of(name, getattr(request, name))
    if not 0 < seconds <= MAX_SECONDS:
        raise InvalidInput(f"{name} is not between 0 and ten years")
    return seconds


def address_in(request: GetPromiseRequest | ResolveRequest | RejectRequest) -> Address:
    match request.WhichOneof("address"):
        case "id":
            return ById(request.id)
        case "key":
            return ByKey(request.key)
        case _:
            raise InvalidInput("the request names no promise; set its id or its key")


def word_in(name: str, text: str, words: type[Word]) -> Word | None:
    """One of the words an answer uses, or None when it is not said."""
    if not text:
        return None
    for word in words:
        if word.name.lower() == text:
            return word
    allowed = ", ".join(word.name.lower() for word in words)
    raise InvalidInput(f"{name} {text!r} is not one of {allowed}")


def page_size_in(asked: int) -> int:
    if asked < 0:
        raise InvalidInput(f"page_size {asked} is negative; leave it out for {PAGE}")
    return min(asked or PAGE, MAX_PAGE)


def _seconds_of(name: str, duration: Duration) -> float:
    if duration.seconds < 0 or not 0 <= duration.nanos < 1_000_000_000:
        raise InvalidInput(f"{name} is not a length of time; it must not be negative")
    return duration.seconds + duration.nanos / 1e9
