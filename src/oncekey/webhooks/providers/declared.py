"""Providers that are declared in the configuration, without code: an HMAC in a header, and an
identifier in a header, in JSON or in a form."""

from __future__ import annotations

import base64
import re
import secrets as random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from oncekey.core.errors import IdentifierMissing, InvalidInput
from oncekey.webhooks import identifiers, signing
from oncekey.webhooks.delivery import Delivery, Event, Item
from oncekey.webhooks.providers.pointer import parse_pointer, resolve_pointer
from oncekey.webhooks.providers.template import parse_template

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_ALGORITHMS = {"hmac-sha256": "sha256", "hmac-sha512": "sha512", "hmac-sha1": "sha1"}
# Later than any second of this era, so a number beyond it counts milliseconds.
_MILLISECONDS = 100_000_000_000


def _as_base64url(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).decode()


_ENCODINGS: Mapping[str, Callable[[bytes], str]] = {
    "hex": signing.as_hex,
    "base64": signing.as_base64,
    "base64url": _as_base64url,
}


@dataclass(frozen=True, slots=True)
class IdentifierAt:
    """One of these."""

    header: str | None = None
    json: str | None = None
    """A JSON pointer: `/event/id`."""
    form: tuple[str, ...] | None = None
    """Fields, which together are the identifier."""


@dataclass(frozen=True, slots=True)
class TimestampAt:
    header: str
    tolerance: float = signing.TOLERANCE


@dataclass(frozen=True, slots=True)
class SignatureAt:
    header: str
    algorithm: str = "hmac-sha256"
    encoding: str = "hex"
    prefix: str = ""
    signed: str = "body"
    """`body`, or text with {body}, {timestamp}, {url}, {method} or {header:NAME} in it."""
    timestamp: TimestampAt | None = None


@dataclass(frozen=True, slots=True)
class DeclaredProvider:
    """What `[[providers]]` says. Raises `InvalidInput` for what cannot work."""

    name: str
    identifier: IdentifierAt
    signature: SignatureAt

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidInput(
                f"the name of a provider must be a-z, 0-9, '-' or '_', begin with a letter, and "
                f"have 32 characters at most; {self.name!r} is not"
            )
        try:
            _check_identifier(self.identifier)
            _check_signature(self.signature)
        except InvalidInput as error:
            raise InvalidInput(f"provider {self.name}: {error}") from None


class Declared:
    """The provider that a declaration describes."""

    def __init__(self, declared: DeclaredProvider) -> None:
        self.name = declared.name
        self._identifier = declared.identifier
        self._signature = declared.signature
        self._template = parse_template(declared.signature.signed)
        self._encode = _ENCODINGS[declared.signature.encoding]
        self._algorithm = _ALGORITHMS[declared.signature.algorithm]

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: float) -> Event:
        given = signing.required(delivery, self._signature.header)
        timestamp = self._timestamp_of(delivery, now)
        text = self._template.fill(delivery, timestamp)
        signing.check(
            [given], text, signing.keys_of(secrets), encode=self._written, algorithm=self._algorithm
        )
        return Event(delivery, (self._item_of(delivery),), covered=text)

    def sign(self, delivery: Delivery, secret: str, now: float) -> Delivery:
        headers = {}
        header, at = self._identifier.header, self._signature.timestamp
        if header is not None and not delivery.header(header):
            headers[header] = str(uuid4())
        if at is not None:
            headers[at.header] = str(int(now))
        delivery = signing.sent(delivery, headers)
        text = self._template.fill(delivery, str(int(now)))
        digest = signing.mac(signing.octets(secret), text, self._algorithm)
        return signing.sent(delivery, {self._signature.header: self._written(digest)})

    def new_secret(self) -> str:
        return random.token_urlsafe(32)

    def _written(self, digest: bytes) -> str:
        return self._signature.prefix + self._encode(digest)

    def _timestamp_of(self, delivery: Delivery, now: float) -> str | None:
        at = self._signature.timestamp
        if at is None:
            return None
        text = signing.required(delivery, at.header)
        moment: float = signing.seconds_of(text)
        if moment >= _MILLISECONDS:
            moment /= 1000
        signing.check_age(moment, now, past=at.tolerance, future=at.tolerance)
        return text

    def _item_of(self, delivery: Delivery) -> Item:
        header, pointer, form = (
            self._identifier.header,
            self._identifier.json,
            self._identifier.form,
        )
        if header is not None:
            identifier = identifiers.text_of(delivery.header(header), header)
            return Item(identifier, delivery.body, signed=self._template.covers(header))
        if pointer is not None:
            found = resolve_pointer(identifiers.json_of(delivery.body), parse_pointer(pointer))
            return Item(identifiers.text_of(_number_as_text(found), pointer), delivery.body)
        return Item(_joined_of(delivery.body, form or ()), delivery.body)


def _number_as_text(value: Any) -> Any:
    """Many providers count: a whole number names as well as text does."""
    return str(value) if type(value) is int else value


def _joined_of(body: bytes, names: Sequence[str]) -> str:
    fields = signing.form_of(body)
    if fields is None:
        raise IdentifierMissing("the body of the delivery is not a form")
    found = [identifiers.text_of(identifiers.field_of(fields, name), name) for name in names]
    return identifiers.text_of(identifiers.joined(found), ":".join(names))


def _check_identifier(at: IdentifierAt) -> None:
    given = [each for each in (at.header, at.json, at.form) if each is not None]
    if len(given) != 1 or not given[0]:
        raise InvalidInput(
            "identifier must be one of header, json and form: "
            'identifier = { header = "X-Acme-Delivery" }'
        )
    if at.json is not None:
        parse_pointer(at.json)
    if at.form is not None and (not all(at.form) or len(set(at.form)) != len(at.form)):
        raise InvalidInput("identifier.form must name fields, each of them once")


def _check_signature(at: SignatureAt) -> None:
    if not at.header:
        raise InvalidInput('signature.header is missing: signature = { header = "X-Signature" }')
    for name, value, known in (
        ("algorithm", at.algorithm, _ALGORITHMS),
        ("encoding", at.encoding, _ENCODINGS),
    ):
        if value not in known:
            raise InvalidInput(f"signature.{name} must be one of {', '.join(known)}, not {value!r}")
    template = parse_template(at.signed)
    if "timestamp" in template.places and at.timestamp is None:
        raise InvalidInput(
            "signature.timestamp is missing: {timestamp} is signed, and nothing says where it is"
        )
    if at.timestamp is not None:
        _check_timestamp(at.timestamp, is_signed="timestamp" in template.places)


def _check_timestamp(at: TimestampAt, *, is_signed: bool) -> None:
    if not is_signed:
        raise InvalidInput(
            "signature.timestamp is not signed, so it would prove nothing; put {timestamp} in "
            "signed, or leave it out"
        )
    if not at.header:
        raise InvalidInput("signature.timestamp.header is missing")
    if not at.tolerance > 0:
        raise InvalidInput("signature.timestamp.tolerance must be above 0 seconds")
