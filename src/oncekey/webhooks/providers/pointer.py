"""JSON pointers, RFC 6901: `/data/0/id`."""

from __future__ import annotations

import re

from oncekey.core.errors import InvalidInput

_WRONG_ESCAPE = re.compile(r"~(?![01])")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


def parse_pointer(text: str) -> tuple[str, ...]:
    if not text.startswith("/") or _WRONG_ESCAPE.search(text):
        raise InvalidInput(
            f"{text!r} is not a JSON pointer such as /event/id, with ~1 for '/' and ~0 for '~'"
        )
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/"))


def resolve_pointer(document: object, pointer: tuple[str, ...]) -> object:
    """None where there is nothing."""
    value = document
    for part in pointer:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and _INDEX.fullmatch(part) and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value
