"""The fields of a form, and what somebody wrote into them as values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Raw

KINDS = ("JSON", "text", "number", "true", "false", "null")
"""What a value by hand may be."""


class Unreadable(Exception):
    """Something in a form that cannot be used; the field and the reason."""

    status = 400
    in_doubt = False

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field
        self.reason = reason


class Field(NamedTuple):
    name: str
    label: str
    kind: Literal["text", "area", "choice", "flag", "number", "secret"] = "text"
    value: str = ""
    hint: str = ""
    choices: Sequence[str] = ()
    required: bool = False


class Form(NamedTuple):
    """What an action asks before it acts."""

    title: str
    says: Sequence[str]
    """What will happen, a paragraph each."""
    button: str
    back: str
    """Where to go without doing it."""
    fields: Sequence[Field] = ()
    danger: bool = False
    """Whether it cannot be undone."""
    facts: Mapping[str, Any] = {}
    """What it is about."""


VALUE_FIELDS = (
    Field("kind", "Kind of value", "choice", "JSON", choices=KINDS),
    Field("value", "Value", "area", hint="As JSON, or the text or number itself."),
)


def value_in(form: Mapping[str, str]) -> str | Raw:
    """What somebody wrote as a value, by its kind: a text, or JSON as it was written. Raises
    `Unreadable`."""
    kind, text = form.get("kind", "JSON"), form.get("value", "")
    match kind:
        case "text":
            return text
        case "true" | "false" | "null":
            return Raw(kind.encode())
        case "number":
            try:
                number = json.loads(text.strip())
            except (ValueError, RecursionError):
                number = None
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise Unreadable("value", "This is not a number.")
            return Raw(text.strip().encode())
        case "JSON":
            try:
                json.loads(text, parse_constant=_refuse)
            except (ValueError, RecursionError) as error:
                raise Unreadable("value", f"This is not JSON: {error}.") from error
            return Raw(text.encode())
        case _:
            raise Unreadable("kind", "There is no such kind of value.")


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")
