"""What a delivery says, as JSON: for expressions, and for what follows it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from oncekey.core.errors import InvalidInput
from oncekey.webhooks.delivery import Event, Item
from oncekey.webhooks.signing import form_of, looks_like_json

_FORM = b"application/x-www-form-urlencoded"

# What is not UTF-8 is no error of msgspec's own.
_UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Content(NamedTuple):
    value: Any
    body: bytes
    """The same as JSON; byte for byte as it came, when it was JSON."""


def content_of(event: Event, item: Item) -> Content:
    """A form is an object of its fields; one that is there several times is a list. Raises
    `InvalidInput` for anything else that is not JSON."""
    body = body_of(event, item)
    if not body:
        return Content(None, b"null")
    try:
        # Before the content type, which is hardly ever signed.
        return Content(_decode(body), body)
    except _UNREADABLE as error:
        fields = form_of(body) if _is_form(event) and not looks_like_json(body) else None
        if not fields:
            raise InvalidInput(f"the body is neither JSON nor a form: {error}") from None
    value = {name: found[0] if len(found) == 1 else [*found] for name, found in fields.items()}
    return Content(value, _encode(value))


def body_of(event: Event, item: Item) -> bytes:
    """What asks with GET has its form in the URL."""
    if item.body or event.delivery.method != "GET":
        return item.body
    return event.delivery.url.partition("?")[2].encode()


def headers_of(event: Event) -> dict[str, str]:
    """By their names in lower case; lines of one name are joined, as HTTP allows."""
    found: dict[str, str] = {}
    for name, line in event.delivery.headers:
        text, value = name.decode("latin-1").lower(), line.decode("latin-1").strip()
        found[text] = f"{found[text]}, {value}" if text in found else value
    return found


# What tells what happened (`x-github-event`), and nothing that proves who said it.
_SECRET = ("signature", "hmac", "token", "auth", "key", "secret", "forwarded", "real-ip")


def shown(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What is kept of the headers with an event."""
    return {
        name: value
        for name, value in headers
        if name.startswith("x-") and not any(word in name for word in _SECRET)
    }


def _is_form(event: Event) -> bool:
    kinds = [value for name, value in event.delivery.headers if name == b"content-type"]
    return not kinds or [kind.lower().partition(b";")[0].strip() for kind in kinds] == [_FORM]
