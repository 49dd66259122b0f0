"""Where a verified delivery says what it is called. What has no usable name raises
`IdentifierMissing`; only call this with what is signed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from oncekey.core.errors import IdentifierMissing
from oncekey.webhooks.delivery import Item
from oncekey.webhooks.signing import Fields

_LONGEST = 255


def text_of(value: object, where: str) -> str:
    """An identifier is text that can be seen and that fits a key."""
    if value is None or value == "":
        raise IdentifierMissing(f"the delivery has no {where}")
    if not isinstance(value, str):
        raise IdentifierMissing(f"{where} of the delivery is not text")
    if len(value) > _LONGEST:
        raise IdentifierMissing(f"{where} of the delivery is longer than {_LONGEST} characters")
    if not value.isprintable() or value.isspace():
        raise IdentifierMissing(f"{where} of the delivery has characters that cannot be seen")
    return value


def json_of(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise IdentifierMissing("the body of the delivery is not JSON") from None


def member_of(value: object, name: str) -> object:
    """None where there is no such member, or no object to have one."""
    return value.get(name) if isinstance(value, dict) else None


def field_of(fields: Fields, name: str) -> str | None:
    """The only value: of two it is not known which is meant."""
    values = fields.get(name, ())
    return values[0] if len(values) == 1 else None


def joined(parts: Sequence[str]) -> str:
    """One text of several, such that no two sequences give the same one."""
    if len(parts) == 1:
        return parts[0]
    return ":".join(part.replace("%", "%25").replace(":", "%3A") for part in parts)


def slices_of(body: bytes, *path: str) -> list[bytes]:
    """The elements of a list of JSON, byte for byte; `path` leads to the list."""
    try:
        raw = body
        for name in path:
            raw = bytes(msgspec.json.decode(raw, type=dict[str, msgspec.Raw])[name])
        return [bytes(each) for each in msgspec.json.decode(raw, type=list[msgspec.Raw])]
    except (msgspec.MsgspecError, ValueError, RecursionError, KeyError):
        where = "/".join(path) or "the body"
        raise IdentifierMissing(f"{where} of the delivery is not a list of JSON") from None


def batch_of(elements: Iterable[bytes], name: str) -> tuple[Item, ...]:
    """One item per element, named by its member `name`. One that is there twice is one."""
    items: dict[str, Item] = {}
    for each in elements:
        identifier = text_of(member_of(json_of(each), name), f"{name} of an event")
        items.setdefault(identifier, Item(identifier, each))
    if not items:
        raise IdentifierMissing("the delivery tells of no event")
    return tuple(items.values())
