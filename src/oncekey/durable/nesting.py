"""How deep a value may be nested that comes from outside. It is read in many places, each somewhere
else on the stack: the bound is a number, and not what is left of the stack where it came in."""

from __future__ import annotations

from typing import Any

import msgspec

from oncekey.core.errors import InvalidInput

MAX_DEPTH = 200

_decode = msgspec.json.Decoder().decode


def check_depth(body: bytes, what: str) -> None:
    """Of JSON; `what` is its name in an error. Raises `InvalidInput`, for what is no JSON as well
    where it has to be read."""
    if not may_be_deeper(body):
        return
    try:
        deeper = is_deeper(_decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{what} is not JSON: {error}") from None
    except RecursionError:
        deeper = True
    if deeper:
        raise InvalidInput(f"{what} is nested more than {MAX_DEPTH} deep")


def may_be_deeper(body: bytes) -> bool:
    """Without reading it: hardly any value has so many brackets."""
    return body.count(b"[") + body.count(b"{") > MAX_DEPTH


def is_deeper(value: Any) -> bool:
    """Whether decoded JSON is nested deeper than that."""
    level, depth = [value], MAX_DEPTH
    while level and depth:
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
        depth -= 1
    return bool(level)
