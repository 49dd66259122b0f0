"""GitHub: `X-Hub-Signature-256` over the body. The identifier is a header, which is not signed."""

from __future__ import annotations

import secrets as random
from collections.abc import Sequence
from uuid import uuid4

from oncekey.webhooks import identifiers, signing
from oncekey.webhooks.delivery import Delivery, Event, Item

_SIGNATURE = "X-Hub-Signature-256"
_IDENTIFIER = "X-GitHub-Delivery"


class GitHub:
    name = "github"

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: float) -> Event:
        given = signing.required(delivery, _SIGNATURE)
        signing.check([given], delivery.body, signing.keys_of(secrets), encode=_written)
        identifier = identifiers.text_of(delivery.header(_IDENTIFIER), _IDENTIFIER)
        return Event(delivery, (Item(identifier, _payload_of(delivery.body), signed=False),))

    def sign(self, delivery: Delivery, secret: str, now: float) -> Delivery:
        signature = _written(signing.mac(signing.octets(secret), delivery.body))
        identifier = delivery.header(_IDENTIFIER) or str(uuid4())
        return signing.sent(delivery, {_SIGNATURE: signature, _IDENTIFIER: identifier})

    def new_secret(self) -> str:
        return random.token_hex(32)


def _written(digest: bytes) -> str:
    return f"sha256={digest.hex()}"


def _payload_of(body: bytes) -> bytes:
    """The JSON, of a form too. The body tells which it is: the content type is not signed."""
    if not body.startswith(b"payload="):
        return body
    payload = identifiers.field_of(signing.form_of(body) or {}, "payload")
    return body if payload is None else signing.octets(payload)
