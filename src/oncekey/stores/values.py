"""Results of functions as JSON: dataclasses, Structs, pydantic models, plain data. Never pickle."""

from __future__ import annotations

from typing import Any, get_origin

import msgspec

from oncekey.core.errors import ValueUnserialisable


class JsonCodec:
    def encode(self, value: Any) -> bytes:
        try:
            return msgspec.json.encode(value, enc_hook=plain_of)
        except (TypeError, ValueError, RecursionError, OverflowError) as error:
            raise ValueUnserialisable(f"the result cannot be kept as JSON: {error}") from error

    def decode(self, body: bytes, kind: Any) -> Any:
        if kind is None or kind is Any:
            return msgspec.json.decode(body)
        try:
            return msgspec.json.decode(body, type=kind, dec_hook=value_of)
        except (TypeError, msgspec.ValidationError):
            # The annotation is not one JSON can be read into; what was stored still is the answer.
            return msgspec.json.decode(body)


def plain_of(value: Any) -> Any:
    """For msgspec: what it does not know itself, as something it does. Raises TypeError."""
    if hasattr(type(value), "__pydantic_serializer__"):
        return msgspec.Raw(dump_model(value))
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"{type(value).__module__}.{type(value).__qualname__} is not JSON")


def dump_model(value: Any) -> bytes:
    """A pydantic model as JSON that the model reads back: by its aliases, nothing computed."""
    body: bytes = type(value).__pydantic_serializer__.to_json(value, by_alias=True, round_trip=True)
    if b"NaN" in body or b"Infinity" in body:
        # A model can be configured to write what looks like JSON and is none.
        msgspec.json.decode(body)
    return body


def value_of(kind: Any, value: Any) -> Any:
    """For msgspec: the inverse of `plain_of`. Raises TypeError and ValueError."""
    if hasattr(kind, "__pydantic_validator__"):
        # Read as JSON again: only there a date is a string, and a set a list, also when strict.
        body = msgspec.json.encode(value)
        try:
            return kind.__pydantic_validator__.validate_json(body)
        except ValueError as error:
            raise ValueError(reason_of(error)) from error
    kind = get_origin(kind) or kind
    if isinstance(value, kind):
        return value
    for plain in (str, int, float):
        if issubclass(kind, plain) and isinstance(value, plain):
            return kind(value)
    raise TypeError(f"{kind.__module__}.{kind.__qualname__} cannot be read from JSON")


def reason_of(error: Exception) -> str:
    """In one line. Of pydantic's reasons only the first, without the value that was given."""
    if not hasattr(error, "errors"):
        return str(error)
    first, *others = error.errors(include_url=False, include_input=False, include_context=False)
    place = ".".join(str(part) for part in first["loc"])
    more = f" (and {len(others)} more)" if others else ""
    return f"{first['msg']}{f' - at `{place}`' if place else ''}{more}"
