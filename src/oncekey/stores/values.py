"""Results of functions as JSON: dataclasses, Structs, pydantic models, plain data. Never pickle."""

from __future__ import annotations

from typing import Any

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
    return body


def value_of(kind: Any, value: Any) -> Any:
    """For msgspec: the inverse of `plain_of`. Raises TypeError, or what pydantic does."""
    if hasattr(kind, "__pydantic_validator__"):
        # Read as JSON again: only there a date is a string, and a set a list, also when strict.
        return kind.__pydantic_validator__.validate_json(msgspec.json.encode(value))
    if isinstance(value, kind):
        return value
    for plain in (str, int, float):
        if issubclass(kind, plain) and isinstance(value, plain):
            return kind(value)
    raise TypeError(f"{kind.__module__}.{kind.__qualname__} cannot be read from JSON")
