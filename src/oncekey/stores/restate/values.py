"""Requests, answers and what is kept, as JSON that says which value it is."""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import Any

import msgspec

from oncekey.core import (
    answers,
    api_keys,
    audit,
    deliveries,
    execution,
    model,
    ports,
    schedules,
    webhooks,
    work,
)
from oncekey.stores.restate import asked, picking

_MODULES: tuple[ModuleType, ...] = (
    answers, api_keys, asked, audit, deliveries, execution, model, picking, ports, schedules,
    webhooks, work,
)  # fmt: skip
_DIGITS = 16

encode = msgspec.json.Encoder().encode


class _Tagged(msgspec.Struct, array_like=True):
    kind: str
    value: msgspec.Raw


def pack(value: Any) -> bytes:
    """`["Insert",[…]]`; a list is `["[]",[…]]` of such, bytes are `["b","…"]` as base64, and what
    JSON has anyway is `["",…]`."""
    if isinstance(value, list):
        return b'["[]",[%b]]' % b",".join(map(pack, value))
    kind = type(value)
    name = "b" if kind is bytes else ""
    name = kind.__qualname__ if isinstance(value, tuple) and kind is not tuple else name
    return b'["%b",%b]' % (name.encode(), encode(value))


def unpack(data: bytes) -> Any:
    """The inverse of `pack`. Raises `ValueError` for anything else."""
    kind, value = _tagged(data)
    if kind == "[]":
        return [unpack(bytes(each)) for each in _list(value)]
    if not kind:
        return msgspec.json.decode(value)
    if kind == "b":
        return _bytes(value)
    return _decoder_of(kind)(value)


def numbered(number: int, value: Any) -> bytes:
    """A value that is listed by its number: as text, it sorts as the number does."""
    return b"%016x%b" % (number, pack(value))


def unnumbered(data: bytes) -> Any:
    return unpack(data[_DIGITS:])


def _tagged(data: bytes) -> tuple[str, msgspec.Raw]:
    found = _TAGGED(data)
    return found.kind, found.value


_TAGGED = msgspec.json.Decoder(_Tagged).decode
_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_bytes = msgspec.json.Decoder(bytes).decode


@lru_cache(maxsize=256)
def _decoder_of(name: str) -> Any:
    for module in _MODULES:
        kind = getattr(module, name, None)
        if isinstance(kind, type) and kind.__module__ == module.__name__:
            return msgspec.json.Decoder(kind).decode
    raise ValueError(f"{name!r} is not a value that is kept or asked for")
