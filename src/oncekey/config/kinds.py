"""What a setting may hold. A kind takes what the file or the environment says and answers the
value, or raises `InvalidInput` with what is expected instead."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any

from oncekey.core.errors import InvalidInput
from oncekey.core.retention import seconds_of

Kind = Callable[[Any], Any]

_TRUE, _FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class FromEnvironment(str):
    """The environment knows text only; each kind reads its own form from it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A table with named settings: `[store]`."""

    type: type[Any]


@dataclass(frozen=True, slots=True)
class Sections:
    """An array of such tables: `[[routes]]`."""

    type: type[Any]


@dataclass(frozen=True, slots=True)
class Named:
    """A table whose names are the user's own, each with a value of one kind: `[retention]`."""

    check: Callable[[str], Any]
    kind: Kind


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"must be text in quotes, not {_type_of(value)}")
    if not value.strip():
        raise InvalidInput("must not be empty")
    return str(value)


def flag(value: Any) -> bool:
    if isinstance(value, FromEnvironment) and value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    if not isinstance(value, bool):
        raise InvalidInput(f"must be true or false, not {_type_of(value)}")
    return value


def whole(low: int, high: int) -> Kind:
    def read(value: Any) -> int:
        if isinstance(value, FromEnvironment) and re.fullmatch(r"[0-9]{1,18}", value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidInput(f"must be a whole number, not {_type_of(value)}")
        if not low <= value <= high:
            raise InvalidInput(f"must be between {low} and {high}, not {value}")
        return value

    return read


def duration(value: Any) -> float:
    """Seconds; a number without a unit is seconds as well."""
    if isinstance(value, str):
        try:
            return seconds_of(value)
        except InvalidInput as error:
            raise InvalidInput(f"must be a duration: {error}") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"must be a duration such as '30s' or '24h', not {_type_of(value)}")
    if not value > 0:
        raise InvalidInput(f"must be a duration above 0, not {value}")
    return float(value)


def choice(*names: str, later: Iterable[str] = ()) -> Kind:
    """One of `names`; those in `later` are known, and honestly refused."""

    def read(value: Any) -> str:
        given = text(value)
        if given in names:
            return given
        if given in later:
            raise InvalidInput(
                f"{given!r} is not in this version yet; there are: {', '.join(names)}"
            )
        raise InvalidInput(
            f"is {given!r}, not one of {', '.join(names)}{did_you_mean(given, names)}"
        )

    return read


def words(value: Any) -> tuple[str, ...]:
    """A list of texts; in the environment, separated by commas."""
    if isinstance(value, FromEnvironment):
        value = [part.strip() for part in value.split(",")]
    if not isinstance(value, list):
        raise InvalidInput(f"must be a list of texts, not {_type_of(value)}")
    if not value:
        raise InvalidInput("must not be an empty list")
    return tuple(text(part) for part in value)


def methods(value: Any) -> tuple[str, ...]:
    names = tuple(name.upper() for name in words(value))
    for name in names:
        if name not in _METHODS:
            known = ", ".join(_METHODS)
            raise InvalidInput(f"has {name!r}, not one of {known}{did_you_mean(name, _METHODS)}")
    return names


def header_names(value: Any) -> tuple[str, ...]:
    names = words(value)
    for name in names:
        if not _TOKEN.fullmatch(name):
            raise InvalidInput(f"has {name!r}, which is not the name of a header")
    return names


def fingerprint(value: Any) -> str | tuple[str, ...]:
    """A mode, or the fields of a JSON body that count."""
    modes = ("value", "bytes", "none")
    if isinstance(value, FromEnvironment) and value not in modes:
        return words(value)
    if isinstance(value, list):
        return words(value)
    if value not in modes:
        raise InvalidInput(f"is {value!r}, neither one of {', '.join(modes)} nor a list of fields")
    return str(value)


def target(value: Any) -> str:
    """Where in Python something is: `module:name`."""
    given = text(value)
    module, separator, name = given.partition(":")
    parts = [*module.split("."), *name.split(".")]
    if not separator or not all(part.isidentifier() for part in parts):
        raise InvalidInput(f"is {given!r}, not of the form 'module:name'")
    return given


def secret(value: Any) -> str:
    """Text that no message may repeat."""
    if not isinstance(value, str):
        raise InvalidInput("must be text in quotes")
    return str(value)


def json_value(value: Any) -> Any:
    """Anything JSON can hold; in the environment, written as JSON."""
    if isinstance(value, FromEnvironment):
        try:
            return json_value(json.loads(value))
        except ValueError:
            raise InvalidInput("must be JSON, such as '{\"depth\": 2}' or '\"text\"'") from None
    if isinstance(value, dict):
        return {str(name): json_value(each) for name, each in value.items()}
    if isinstance(value, list):
        return [json_value(each) for each in value]
    if not isinstance(value, str) and not (isinstance(value, int | float) and isfinite(value)):
        raise InvalidInput(f"has {value}, which is no JSON; write it as text in quotes")
    return value


def did_you_mean(given: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(given, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _type_of(value: Any) -> str:
    match value:
        case FromEnvironment():
            return repr(str(value))
        case bool():
            return str(value).lower()
        case str():
            return f"the text {value!r}"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return str(value)
