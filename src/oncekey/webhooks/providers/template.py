"""What a declared provider signs: `body`, or text with places in it, such as `{timestamp}.{body}`.

A header in it counts as signed, so there is one way only to take the text apart again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from oncekey.core.errors import InvalidInput, SignatureInvalid
from oncekey.webhooks import signing
from oncekey.webhooks.delivery import Delivery

_PLACE = re.compile(r"\{([^{}]*)\}")
_HEADER = re.compile(r"header:([!#$%&'*+.^_`|~0-9A-Za-z-]+)")
_PLAIN = frozenset({"body", "timestamp", "url", "method"})


@dataclass(frozen=True, slots=True)
class Template:
    texts: tuple[bytes, ...]
    """One more than places: what stands before, between and after them."""
    places: tuple[str, ...]

    def covers(self, header: str) -> bool:
        return f"header:{header}".lower() in map(str.lower, self.places)

    def fill(self, delivery: Delivery, timestamp: str | None) -> bytes:
        body = self.places.index("body")
        filled = [self.texts[0]]
        for at, place in enumerate(self.places):
            value = _value_of(place, delivery, timestamp)
            if place not in _PLAIN:
                _check_end(value, place, self.texts[at : at + 2], is_before=at < body)
            filled += [value, self.texts[at + 1]]
        return b"".join(filled)


def parse_template(signed: str) -> Template:
    """Raises `InvalidInput`."""
    parts = _PLACE.split("{body}" if signed == "body" else signed)
    template = Template(tuple(text.encode() for text in parts[0::2]), tuple(parts[1::2]))
    if any(mark in text for text in template.texts for mark in (b"{", b"}")):
        raise InvalidInput(f"signed: {signed!r} has a brace that is not closed, or not opened")
    for place in template.places:
        if place not in _PLAIN and not _HEADER.fullmatch(place):
            raise InvalidInput(
                f"signed: {{{place}}} is none of {{body}}, {{timestamp}}, {{url}}, {{method}} and "
                "{header:NAME}"
            )
    if template.places.count("body") != 1:
        raise InvalidInput(
            f"signed: {signed!r} must be 'body', or have {{body}} once: what is not signed is not "
            "believed"
        )
    _check_ends(template)
    return template


def _check_ends(template: Template) -> None:
    body = template.places.index("body")
    for at, place in enumerate(template.places):
        if place not in _PLAIN and not template.texts[at + (at < body)]:
            raise InvalidInput(
                f"signed: there must be text between {{{place}}} and what is next to it on the "
                "side of {body}, or nobody can tell where it ends"
            )


def _value_of(place: str, delivery: Delivery, timestamp: str | None) -> bytes:
    match place:
        case "body":
            return delivery.body
        case "url":
            return signing.octets(delivery.url)
        case "method":
            return signing.octets(delivery.method)
        case "timestamp":
            return signing.header_octets(timestamp or "")
        case _:
            header = place.removeprefix("header:")
            return signing.header_octets(signing.required(delivery, header))


def _check_end(value: bytes, place: str, around: tuple[bytes, ...], *, is_before: bool) -> None:
    before, after = around
    if is_before:
        ends = (value + after).find(after) == len(value)
    else:
        ends = (before + value).rfind(before) == 0
    if not ends:
        raise SignatureInvalid(f"{{{place}}} has in it what ends it in the signed text")
