"""Results of functions as JSON: dataclasses, Structs, pydantic models, plain data. Never pickle."""

from __future__ import annotations

from typing import Any

import msgspec

from oncekey.core.errors import ValueUnserialisable


class JsonCodec:
    def encode(self, value: Any) -> bytes:
        try:
            return msgspec.json.encode(value, enc_hook=_dump_model)
        except (TypeError, ValueError, RecursionError, OverflowError) as error:
            raise ValueUnserialisable(f"the result cannot be kept as JSON: {error}") from error

    def decode(self, body: bytes, kind: Any) -> Any:
        if kind is None or kind is Any:
            return msgspec.json.decode(body)
        try:
            return msgspec.json.decode(body, type=kind, dec_hook=_load_model)
        except (TypeError, msgspec.ValidationError):
            # The annotation is not one JSON can be read into; what was stored still is the answer.
            return msgspec.json.decode(body)


def _dump_model(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} is not JSON")


def _load_model(kind: type[Any], value: Any) -> Any:
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    raise TypeError(f"{kind} cannot be read from JSON")
