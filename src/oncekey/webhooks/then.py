"""What follows a delivery: one of four. Expressions are CEL over `body`, `headers`, `identifier`
and `provider`."""

from __future__ import annotations

import re
from typing import NamedTuple

from oncekey.core.errors import InvalidInput

_UNKEPT = re.compile(r"[\x00\ud800-\udfff]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,199}")


class Forward(NamedTuple):
    """To the upstream of the route with this path, which is asked with POST."""

    path: str

    def __str__(self) -> str:
        return f"forward:{self.path}"


class Publish(NamedTuple):
    """An event: `key` is its key, its data the body."""

    key: str

    def __str__(self) -> str:
        return f"event:{self.key}"


class Resolve(NamedTuple):
    """The promise with this key, with the body as its value; parked when nobody waits yet."""

    key: str

    def __str__(self) -> str:
        return f"resolve:{self.key}"


class Start(NamedTuple):
    """A workflow, with the body as its input; its key is that of the delivery."""

    name: str

    def __str__(self) -> str:
        return f"workflow:{self.name}"


Then = Forward | Publish | Resolve | Start


def parse_then(text: str) -> Then:
    """The inverse of `str`. CEL is checked by whoever can evaluate it."""
    kind, _, rest = text.strip().partition(":")
    rest = rest.strip()
    if _UNKEPT.search(text):
        raise InvalidInput("what follows has a NUL, or half a character")
    match kind.strip():
        case "forward" if rest.startswith("/"):
            return Forward(rest)
        case "event" if rest:
            return Publish(rest)
        case "resolve" if rest:
            return Resolve(rest)
        case "workflow" if _NAME.fullmatch(rest):
            return Start(rest)
        case _:
            pass
    raise InvalidInput(
        f"{text!r} is none of forward:/path, event:CEL, resolve:CEL or workflow:NAME; for "
        'instance resolve:"stripe:" + body.data.object.id'
    )
