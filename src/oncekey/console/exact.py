"""JSON as it was written: numbers keep their digits, and of members of one name all are shown."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Self

# Python reads no whole number of many more digits, and few people do.
_LONGEST_INTEGER = 1000


class Written(float):
    """A number, and how it was written."""

    text: str

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, text)
        number.text = text
        return number


class Repeating(dict[str, Any]):
    """An object in which a name stands more than once; as a dictionary, the last one counts."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def read(text: str | bytes) -> Any:
    """Raises `ValueError` for what is no JSON, and `RecursionError` for what is nested deeply."""
    return json.loads(text, parse_float=Written, parse_int=_integer, object_pairs_hook=_object)


def written(value: Any, margin: str | None = "\n") -> str:
    """A value that was read, laid out on several lines; on one line where `margin` is None."""
    inner = None if margin is None else f"{margin}  "
    match value:
        case Written():
            return value.text
        case dict() if value:
            pairs = value.pairs if isinstance(value, Repeating) else value.items()
            members = (f"{_plain(name)}: {written(each, inner)}" for name, each in pairs)
            return "{" + _joined(members, margin, inner) + "}"
        case list() if value:
            items = (written(each, inner) for each in value)
            return "[" + _joined(items, margin, inner) + "]"
        case _:
            return _plain(value)


def _joined(parts: Iterable[str], margin: str | None, inner: str | None) -> str:
    if inner is None or margin is None:
        return ", ".join(parts)
    return inner + f",{inner}".join(parts) + margin


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _integer(text: str) -> int | Written:
    return Written(text) if text == "-0" or len(text) > _LONGEST_INTEGER else int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Repeating(pairs)
