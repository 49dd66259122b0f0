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
from oncekey.core.scope import namespace_of

Kind = Callable[[Any], Any]

_TRUE, _FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SIZE = re.compile(r"([0-9]{1,15}) ?(B|[kKMG]i?B)")
_UNITS = {
    "b": 1,
    "kb": 1 << 10,
    "kib": 1 << 10,
    "mb": 1 << 20,
    "mib": 1 << 20,
    "gb": 1 << 30,
    "gib": 1 << 30,
}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_PATH = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_PEM = re.compile(r"-----BEGIN (?:(?:RSA |EC )?PUBLIC KEY|CERTIFICATE)-----\n")
ALGORITHMS = (
    *("HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519", "Ed448"),
)
_ALIKE = 0.6
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
    """A table whose names are the user's own, each with a value of one kind, `[retention]`, or a
    table: `[upstreams.orders]`."""

    check: Callable[[str], Any]
    kind: Kind | Section


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"must be text in quotes, not {_type_of(value)}")
    if not value.strip():
        raise InvalidInput("must not be empty")
    return str(value)


def text_or_nothing(value: Any) -> str:
    return "" if value == "" else text(value)


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


def duration_between(low: float, high: float) -> Kind:
    """Seconds in these bounds; 0 turns something off where it is in them."""

    def read(value: Any) -> float:
        seconds = 0.0 if low == 0 and value in (0, "0", "0s") else duration(value)
        if not low <= seconds <= high:
            raise InvalidInput(f"must be between {low:g} and {high:g} seconds, not {seconds:g}")
        return seconds

    return read


def share(value: Any) -> float:
    """A part of a whole, from 0 to 1."""
    if isinstance(value, FromEnvironment) and re.fullmatch(r"[0-9]{0,3}\.?[0-9]{1,9}", value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"must be a number from 0 to 1, not {_type_of(value)}")
    if not 0 <= value <= 1:
        raise InvalidInput(f"must be between 0 and 1, not {value}")
    return float(value)


def size(low: int, high: int) -> Kind:
    """Bytes: a number, or text with a unit. A thousand of each is 1024 of the one below."""
    number = whole(low, high)

    def read(value: Any) -> int:
        if isinstance(value, str) and (found := _SIZE.fullmatch(value)):
            value = int(found[1]) * _UNITS[found[2].lower()]
        elif isinstance(value, str) and not isinstance(value, FromEnvironment):
            raise InvalidInput(f"must be a size such as '5MB', or a number of bytes, not {value!r}")
        return int(number(value))

    return read


def choice(*names: str) -> Kind:
    def read(value: Any) -> str:
        given = text(value)
        if given in names:
            return given
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


def text_or_words(value: Any) -> tuple[str, ...]:
    return (
        words(value)
        if not isinstance(value, str) or isinstance(value, FromEnvironment)
        else (text(value),)
    )


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


def header_name(value: Any) -> str:
    given = text(value)
    if not _TOKEN.fullmatch(given):
        raise InvalidInput(f"is {given!r}, which is not the name of a header")
    return given


def variable(value: Any) -> str:
    """The name of a variable of the environment, not what it holds."""
    given = text(value)
    if not _VARIABLE.fullmatch(given):
        raise InvalidInput("must be the name of a variable, such as 'JWT_SECRET', not its value")
    return given


def slug(value: Any) -> str:
    """A tenant."""
    given = text(value)
    namespace_of(given)
    return given


def upstream_name(name: str) -> str:
    """Such that a variable of the environment can name it as well."""
    if not _NAME.fullmatch(name) or "__" in name:
        raise InvalidInput(
            f"upstream {name!r} must be a-z, 0-9, '-' or single '_', begin with a letter, and "
            "have 32 characters at most"
        )
    return name


def algorithms(value: Any) -> tuple[str, ...]:
    """Those that tokens may be signed with. `none` would let in everybody."""
    names = words(value)
    for name in names:
        if name.lower() == "none":
            raise InvalidInput("has 'none', under which anybody signs anything; take it out")
        if name not in ALGORITHMS:
            known = ", ".join(ALGORITHMS)
            raise InvalidInput(f"has {name!r}, not one of {known}{did_you_mean(name, ALGORITHMS)}")
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


def path(value: Any) -> str:
    given = text(value)
    if not _PATH.fullmatch(given):
        raise InvalidInput(f"is {given!r}, not a path such as '/metrics'")
    return given


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


def pem(value: Any) -> str:
    """A public key. The environment may write its line breaks as \\n."""
    given = text(value)
    if isinstance(value, FromEnvironment):
        given = given.replace("\\n", "\n")
    if "PRIVATE KEY" in given:
        raise InvalidInput("is a private key; who only checks tokens needs the public one")
    if not _PEM.search(given):
        raise InvalidInput("must be PEM text: -----BEGIN PUBLIC KEY----- …")
    return given


def json_value(value: Any) -> Any:
    """Anything JSON can hold; in the environment, written as JSON."""
    if isinstance(value, FromEnvironment):
        try:
            return json_value(json.loads(value))
        except (ValueError, RecursionError):
            raise InvalidInput("must be JSON, such as '{\"depth\": 2}' or '\"text\"'") from None
    if isinstance(value, dict):
        return {str(name): json_value(each) for name, each in value.items()}
    if isinstance(value, list):
        return [json_value(each) for each in value]
    if not isinstance(value, str) and not (isinstance(value, int | float) and isfinite(value)):
        raise InvalidInput(f"has {value}, which is no JSON; write it as text in quotes")
    return value


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Of names that are as close as each other, the first; small letters are as good as others."""
    meant = given.lower()
    likeness = {name: difflib.SequenceMatcher(None, name.lower(), meant).ratio() for name in known}
    closest = max(likeness, key=likeness.__getitem__, default="")
    return f"; did you mean {closest!r}?" if likeness.get(closest, 0.0) >= _ALIKE else ""


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
