"""Standard Webhooks, and Svix, which has its own names for the headers: the identifier, the time
and the body are signed, with HMAC (`v1`) or Ed25519 (`v1a`).

A secret is `whsec_…`, or `whpk_…` (public key), or `whsk_…` (private key, to sign with).
"""

from __future__ import annotations

import base64
import re
import secrets as random
from collections.abc import Iterator, Sequence
from uuid import uuid4

from oncekey.core.errors import InvalidInput, SignatureInvalid
from oncekey.webhooks import identifiers, public_keys, signing
from oncekey.webhooks.delivery import Delivery, Event, Item

_PUBLIC = "whpk_"
_PRIVATE = "whsk_"
_SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")


class StandardWebhooks:
    def __init__(self, name: str = "standard", prefixes: Sequence[str] = ("webhook",)) -> None:
        self.name = name
        self._prefixes = prefixes

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: float) -> Event:
        identifier = self._required(delivery, "id")
        moment = _moment_of(self._required(delivery, "timestamp"))
        given = self._required(delivery, "signature").split(" ")
        signing.check_age(moment, now)
        _check(signing.bounded(given), _signed(identifier, moment, delivery.body), secrets)
        identifier = identifiers.text_of(identifier, f"{self._prefixes[0]}-id")
        return Event(delivery, (Item(identifier, delivery.body),))

    def sign(self, delivery: Delivery, secret: str, now: float) -> Delivery:
        identifier = self._header(delivery, "id") or f"msg_{uuid4().hex}"
        text = _signed(identifier, now, delivery.body)
        values = {"id": identifier, "timestamp": str(int(now)), "signature": _made(text, secret)}
        prefix = self._prefixes[0]
        return signing.sent(delivery, {f"{prefix}-{name}": text for name, text in values.items()})

    def new_secret(self) -> str:
        return "whsec_" + base64.b64encode(random.token_bytes(24)).decode()

    def _header(self, delivery: Delivery, name: str) -> str | None:
        found = (delivery.header(f"{prefix}-{name}") for prefix in self._prefixes)
        return next((value for value in found if value), None)

    def _required(self, delivery: Delivery, name: str) -> str:
        value = self._header(delivery, name)
        if value is None:
            raise SignatureInvalid(f"there is no header {self._prefixes[0]}-{name}")
        return value


def svix() -> StandardWebhooks:
    return StandardWebhooks("svix", ("svix", "webhook"))


def _moment_of(text: str) -> float:
    if not _SECONDS.fullmatch(text):
        raise SignatureInvalid("the timestamp is not a number of seconds since 1970")
    return float(text)


def _signed(identifier: str, moment: float, body: bytes) -> bytes:
    """The libraries sign the whole second, whatever fraction of it the header has."""
    return b"%b.%d.%b" % (signing.header_octets(identifier), int(moment), body)


def _check(given: Sequence[str], text: bytes, secrets: Sequence[str]) -> None:
    versioned = [each.partition(",") for each in given]
    symmetric = [value for version, _, value in versioned if version == "v1"]
    asymmetric = [value for version, _, value in versioned if version == "v1a"]
    for key in _public_keys_of(secrets):
        if any(public_keys.ed25519_verifies(key, text, value) for value in asymmetric):
            return
    signing.check(symmetric, text, _keys_of(secrets), encode=signing.as_base64)


def _keys_of(secrets: Sequence[str]) -> list[bytes]:
    shared = (each for each in secrets if not each.startswith((_PUBLIC, _PRIVATE)))
    found = (signing.bytes_of_base64(each.removeprefix("whsec_")) for each in shared)
    return [key for key in found if key]


def _public_keys_of(secrets: Sequence[str]) -> Iterator[bytes]:
    for secret in secrets:
        key = signing.bytes_of_base64(secret[len(_PUBLIC) :])
        if key is not None and secret.startswith(_PRIVATE):
            key = public_keys.ed25519_public_of(key)
        if key is not None and secret.startswith((_PUBLIC, _PRIVATE)):
            yield key


def _made(text: bytes, secret: str) -> str:
    if secret.startswith(_PRIVATE):
        key = signing.bytes_of_base64(secret[len(_PRIVATE) :])
        return "v1a," + public_keys.ed25519_sign(key or b"", text)
    keys = _keys_of([secret])
    if not keys:
        raise InvalidInput("a secret to sign with is whsec_ or whsk_, followed by Base64")
    return "v1," + signing.as_base64(signing.mac(keys[0], text))
