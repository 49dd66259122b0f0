"""Typed values as JSON: what goes into durable work, and what comes out of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache, partial
from hashlib import blake2b
from math import isfinite
from typing import Any

import msgspec

from oncekey.core.errors import (
    ConfigurationError,
    InvalidInput,
    PayloadTooLarge,
    ValueUnserialisable,
)
from oncekey.durable.engine import MAX_PAYLOAD
from oncekey.stores.values import dump_model, plain_of, reason_of, value_of
from oncekey.wire.fingerprint import canonical_json

_MAX_REASON = 300

canonical = canonical_json
"""JSON bytes that are equal for equal values."""

Reader = Callable[[bytes], Any]

_encode = msgspec.json.Encoder(enc_hook=plain_of).encode
_decode = msgspec.json.Decoder().decode
_REFUSALS = (TypeError, ValueError, RecursionError, OverflowError)


def encode(value: Any, what: str) -> bytes:
    """`value` as JSON; `what` is its name in an error.

    Raises `ValueUnserialisable` for what JSON cannot hold, NaN and the infinities among it, and
    `PayloadTooLarge`.
    """
    if value is None:
        return b"null"
    try:
        body = _writer_of(type(value))(value)  # type: ignore[arg-type] # types are hashable
    except _REFUSALS as error:
        raise ValueUnserialisable(f"{what} cannot be kept as JSON: {_short(error)}") from error
    if len(body) > MAX_PAYLOAD:
        raise PayloadTooLarge(f"{what} has {len(body)} bytes; {MAX_PAYLOAD} are allowed")
    if b"null" in body:
        # That is also what encoders write for NaN and the infinities.
        _check_numbers(value, what)
    return body


def decode(body: bytes, kind: Any, what: str) -> Any:
    """The value of a type that `body` holds; of None or Any: plain data. Raises `InvalidInput`."""
    try:
        return reader_of(kind)(body)
    except _REFUSALS as error:
        raise InvalidInput(f"{what} does not fit: {_short(error)}") from error


@lru_cache(maxsize=1024)
def _writer_of(kind: type[Any]) -> Callable[[Any], bytes]:
    return dump_model if hasattr(kind, "__pydantic_serializer__") else _encode


def reader_of(kind: Any) -> Reader:
    """Raises `ConfigurationError` for a type that nothing can be read into."""
    try:
        return _reader_of(kind)
    except TypeError:
        # It cannot be hashed, so it is not remembered either.
        return _reader_of.__wrapped__(kind)


@lru_cache(maxsize=1024)
def _reader_of(kind: Any) -> Reader:
    if kind is None or kind is Any:
        return _decode
    if isinstance(kind, type) and hasattr(kind, "__pydantic_validator__"):
        return partial(_read_model, kind)
    try:
        return msgspec.json.Decoder(kind, dec_hook=value_of).decode
    except TypeError as error:
        return _reader_by_pydantic(kind, error)


def _read_model(kind: Any, body: bytes) -> Any:
    # Looked up each time: pydantic replaces it once all that a model refers to is defined.
    return kind.__pydantic_validator__.validate_json(body)


def _reader_by_pydantic(kind: Any, refusal: TypeError) -> Reader:
    """Pydantic, where it is in use anyway, knows unions that msgspec does not."""
    try:
        read: Reader = sys.modules["pydantic"].TypeAdapter(kind).validate_json
        # Only when it is used does it tell that something is not defined.
        with suppress(ValueError):
            read(b"null")
    except Exception as error:
        raise ConfigurationError(f"{kind} cannot be read from JSON: {refusal}") from error
    return read


def _check_numbers(value: Any, what: str) -> None:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, float):
            if not isfinite(each):
                raise ValueUnserialisable(f"{what} cannot be kept as JSON, which has no {each}")
        elif not isinstance(each, str):
            waiting.extend(_parts_of(each))


def _parts_of(value: Any) -> Iterable[Any]:
    """What is written of a value that consists of others."""
    if isinstance(value, list | tuple | set | frozenset):
        return value
    if hasattr(value, "model_dump"):
        # A model that writes such numbers as words reads them back.
        is_safe = value.model_config.get("ser_json_inf_nan") == "strings"
        value = {} if is_safe else value.model_dump(round_trip=True)
    if isinstance(value, dict):
        return value.values()
    names = getattr(value, "__struct_fields__", getattr(value, "__dataclass_fields__", ()))
    return [getattr(value, name) for name in names]


def _short(error: Exception) -> str:
    reason = reason_of(error)
    return reason if len(reason) <= _MAX_REASON else f"{reason[:_MAX_REASON]}…"


# -- fingerprints ----------------------------------------------------------------------------


def fingerprint_of(*parts: bytes | str) -> bytes:
    """16 bytes; lengths in front keep the parts apart."""
    contents = [part.encode() if isinstance(part, str) else part for part in parts]
    whole = b"".join([b"%d:%b" % (len(content), content) for content in contents])
    return blake2b(whole, digest_size=16).digest()


def fingerprint_of_arguments(args: tuple[Any, ...]) -> bytes:
    """Equal for equal arguments, in every process. What is not JSON counts by its type alone."""
    for write in (_encode_in_order, _encode_with_keys):
        with suppress(*_REFUSALS):
            return fingerprint_of(write(args))
    return fingerprint_of(*(_type_name(each) for each in args))


def _encode_with_keys(args: tuple[Any, ...]) -> bytes:
    """Also when keys are no texts, which is slower."""
    return _encode(msgspec.to_builtins(args, str_keys=True, order="deterministic", enc_hook=_count))


def _count(value: Any) -> Any:
    try:
        return value.model_dump() if hasattr(value, "model_dump") else _type_name(value)
    except _REFUSALS:
        return _type_name(value)


def _type_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


# Sets and dicts keep no order that another process could know.
_encode_in_order = msgspec.json.Encoder(enc_hook=_count, order="deterministic").encode
