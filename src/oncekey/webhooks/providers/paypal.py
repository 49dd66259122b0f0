"""PayPal: `PAYPAL-TRANSMISSION-SIG` over the transmission and a checksum of the body, by the key of
a certificate. The certificate is part of the secret: the URL of one in a header is never fetched.

A secret is `WEBHOOK_ID:PEM`, where PEM is PayPal's certificate, or a private key to sign with.
"""

from __future__ import annotations

import re
import secrets as random
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import uuid4

from oncekey.core.errors import SignatureInvalid
from oncekey.webhooks import identifiers, public_keys, signing
from oncekey.webhooks.delivery import Delivery, Event, Item

_IDENTIFIER = "PAYPAL-TRANSMISSION-ID"
_TIME = "PAYPAL-TRANSMISSION-TIME"
_SIGNATURE = "PAYPAL-TRANSMISSION-SIG"
_ALGORITHM = "PAYPAL-AUTH-ALGO"
_CERTIFICATE = "PAYPAL-CERT-URL"
_SHA256_WITH_RSA = "SHA256withRSA"
_OWN = re.compile(r"https://(?:[a-z0-9-]+\.)+paypal\.com/[!-~]*")


class PayPal:
    name = "paypal"

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: float) -> Event:
        given = signing.required(delivery, _SIGNATURE)
        if signing.required(delivery, _ALGORITHM) != _SHA256_WITH_RSA:
            raise SignatureInvalid(f"{_ALGORITHM} is not {_SHA256_WITH_RSA}")
        if not _OWN.fullmatch(signing.required(delivery, _CERTIFICATE)):
            raise SignatureInvalid(f"{_CERTIFICATE} is not a URL of PayPal")
        text = _check(delivery, given, secrets)
        event = identifiers.json_of(delivery.body)
        identifier = identifiers.text_of(identifiers.member_of(event, "id"), "id")
        # A body with a wanted checksum is easily made, so the identifier in it counts as unsigned.
        return Event(delivery, (Item(identifier, delivery.body, signed=False),), covered=text)

    def sign(self, delivery: Delivery, secret: str, now: float) -> Delivery:
        webhook, _, pem = secret.partition(":")
        identifier = delivery.header(_IDENTIFIER) or str(uuid4())
        moment = datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        text = _signed(identifier, moment, webhook, delivery.body)
        headers = {
            _IDENTIFIER: identifier,
            _TIME: moment,
            _SIGNATURE: public_keys.rsa_sign(pem, text),
            _ALGORITHM: _SHA256_WITH_RSA,
            _CERTIFICATE: "https://api.paypal.com/v1/notifications/certs/CERT-test",
        }
        return signing.sent(delivery, headers)

    def new_secret(self) -> str:
        return f"{random.token_hex(8).upper()}:{public_keys.new_rsa_key()}"


def _check(delivery: Delivery, given: str, secrets: Sequence[str]) -> bytes:
    identifier = signing.required(delivery, _IDENTIFIER)
    moment = signing.required(delivery, _TIME)
    for secret in secrets:
        webhook, _, pem = secret.partition(":")
        text = _signed(identifier, moment, webhook, delivery.body)
        if public_keys.rsa_verifies(pem, text, given):
            return text
    raise SignatureInvalid("the signature is by none of the certificates, or for another webhook")


def _signed(identifier: str, moment: str, webhook: str, body: bytes) -> bytes:
    head = signing.header_octets(f"{identifier}|{moment}|{webhook}|")
    return b"%b%d" % (head, zlib.crc32(body))
