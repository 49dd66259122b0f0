"""What a request holds, as values. What cannot be used is refused, and the refusal names it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from enum import IntEnum
from math import isfinite
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta

from oncekey.api.endpoint import Call, Parameter, Receive
from oncekey.core.errors import InvalidInput, KeyInvalid, PayloadTooLarge
from oncekey.core.key import parse_key
from oncekey.core.retention import MAX_SECONDS, seconds_of
from oncekey.durable.engine import MAX_PAYLOAD

# What stands around a value: other members, and the spaces of a body that was laid out.
MAX_BODY = MAX_PAYLOAD + (64 << 10)
PAGE, LARGEST_PAGE = 50, 200
MAX_QUERY = 64
_LONGEST_SHOWN = 100

WAIT = Parameter(
    "wait",
    "How long to wait for an end, such as `30s`; a minute at most.",
    {"type": "string", "examples": ["30s"]},
)
LIMIT = Parameter(
    "limit",
    "How many to show at most. A larger number is taken as the largest.",
    {"type": "integer", "minimum": 1, "default": PAGE},
)
BEFORE = Parameter("before", "The `next_before` of the page above.", {"type": "string"})

Duration = Annotated[
    str | float | None, Meta(description="`30s`, `15m`, `24h`, `7d`, or a number of seconds.")
]

Body = TypeVar("Body", bound=msgspec.Struct)
Word = TypeVar("Word", bound=IntEnum)
Place = TypeVar("Place")

# No key, name or id holds any of these, and neither a pattern nor a store must meet them.
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")

_decode = msgspec.json.Decoder().decode


class RequestIncomplete(InvalidInput):
    """Nothing was run. Send the request again, whole."""

    code = "request-incomplete"


class KeyMissing(InvalidInput):
    """The request must have a key."""

    code = "idempotency-key-missing"


async def read_body(receive: Receive) -> bytes:
    pieces, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestIncomplete
        piece = message.get("body", b"")
        pieces.append(piece)
        size += len(piece)
        if size > MAX_BODY:
            raise PayloadTooLarge(f"the request body is larger than {MAX_BODY} bytes")
        if not message.get("more_body", False):
            return b"".join(pieces)


def body_of(content: bytes, kind: type[Body]) -> Body:
    """The body as a value of that kind; no body at all is an empty object."""
    content = content.strip() or b"{}"
    try:
        # Values are kept as they came. They are read here so that nothing is kept that is not JSON.
        given = _decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the request body is not JSON: {error}") from None
    except RecursionError:
        raise InvalidInput("the request body is nested too deeply") from None
    if not isinstance(given, dict):
        raise InvalidInput("the request body must be a JSON object")
    fields = [each.encode_name for each in msgspec.structs.fields(kind)]
    check_names("member", given, fields)
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"the request body does not fit: {error}") from None


def query_of(text: bytes, allowed: Iterable[Parameter]) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            text.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_QUERY, errors="strict"
        )
    except ValueError:
        raise InvalidInput("the query cannot be read; percent-encode it as UTF-8") from None
    query = dict(pairs)
    if any(UNPRINTABLE.search(value) for value in query.values()):
        raise InvalidInput("a query parameter holds a control character")
    check_names("query parameter", query, [each.name for each in allowed])
    if len(query) < len(pairs):
        raise InvalidInput("a query parameter is given twice; send it once")
    return query


def check_names(what: str, given: Iterable[str], allowed: list[str]) -> None:
    for name in given:
        if name not in allowed:
            # To compare takes longer the longer it is, and a caller may have made it up.
            shown = name[:_LONGEST_SHOWN]
            near = get_close_matches(shown, allowed, 1)
            known = ", ".join(allowed) or "none"
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {known}"
            raise InvalidInput(f"unknown {what} {shown!r}; {hint}")


def key_in(lines: list[bytes]) -> str | None:
    """The key of the header Idempotency-Key, by the grammar of every other route."""
    if len(lines) > 1:
        raise KeyInvalid("there are two Idempotency-Key headers; send one")
    return parse_key(lines[0].decode("latin-1")) if lines else None


def key_of(call: Call, **members: Any) -> str | None:
    """The key of a request, wherever it stands: in the header, or in one of these members."""
    given = {"the header Idempotency-Key": call.key, **members}
    found = {name: value for name, value in given.items() if value is not None}
    if len(set(map(repr, found.values()))) > 1:
        raise InvalidInput(f"{' and '.join(found)} differ; send one key")
    return next(iter(found.values()), None)


def seconds_in(name: str, given: str | float | None) -> float | None:
    """A length of time: `30s`, `24h`, or a number of seconds."""
    if given is None:
        return None
    seconds = seconds_of(given) if isinstance(given, str) else float(given)
    if not isfinite(seconds) or not 0 < seconds <= MAX_SECONDS:
        raise InvalidInput(f"{name} is not between 0 and ten years; write 30s, 15m, 24h or 7d")
    return seconds


def wait_in(query: Mapping[str, str], longest: float) -> float:
    """Seconds to wait; 0 when that is not asked for."""
    text = query.get("wait", "0").strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return min(float(text), longest)
    return 0.0 if text == "0s" else min(seconds_of(text), longest)


def limit_in(query: Mapping[str, str]) -> int:
    text = query.get("limit", str(PAGE))
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise InvalidInput(f"limit is a number from 1 to {LARGEST_PAGE}")
    return min(int(text), LARGEST_PAGE)


def before_in(
    query: Mapping[str, str], place_of: Callable[[str], Place | None], otherwise: str
) -> Place | None:
    """Where a page begins, or None for the first one; what has no place is `otherwise`."""
    text = query.get("before")
    if text is None:
        return None
    place = place_of(text)
    if place is None:
        raise InvalidInput(f"before is {otherwise}; send the next_before of the page above")
    return place


def word_in(query: Mapping[str, str], name: str, words: type[Word]) -> Word | None:
    """One of the words that answers use, or None when it is not said."""
    text = query.get(name)
    if text is None:
        return None
    known = {each.name.lower(): each for each in words}
    if text not in known:
        near = get_close_matches(text, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"
        raise InvalidInput(f"{name} {text[:100]!r} is not known; {hint}")
    return known[text]


def bool_in(query: Mapping[str, str], name: str) -> bool | None:
    text = query.get(name)
    if text is None:
        return None
    if text not in {"true", "false"}:
        raise InvalidInput(f"{name} is true or false")
    return text == "true"
