"""Shopify: `X-Shopify-Hmac-Sha256` over the body. Its identifiers are headers, which are not
signed."""

from __future__ import annotations

import secrets as random
from collections.abc import Sequence
from uuid import uuid4

from oncekey.core.errors import SignatureInvalid
from oncekey.webhooks import identifiers, signing
from oncekey.webhooks.delivery import Delivery, Event, Item

_SIGNATURE = "X-Shopify-Hmac-Sha256"
_DELIVERY = "X-Shopify-Webhook-Id"
_EVENT = "X-Shopify-Event-Id"


class Shopify:
    name = "shopify"

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: float) -> Event:
        given = _header(delivery, _SIGNATURE)
        if given is None:
            raise SignatureInvalid(f"there is no header {_SIGNATURE}")
        signing.check([given], delivery.body, signing.keys_of(secrets), encode=signing.as_base64)
        # Two subscriptions to one event are two deliveries, each with something of its own to do.
        found = _header(delivery, _DELIVERY) or _header(delivery, _EVENT)
        identifier = identifiers.text_of(found, _DELIVERY)
        return Event(delivery, (Item(identifier, delivery.body, signed=False),))

    def sign(self, delivery: Delivery, secret: str, now: float) -> Delivery:
        signature = signing.as_base64(signing.mac(signing.octets(secret), delivery.body))
        headers = {_SIGNATURE: signature}
        for name in (_DELIVERY, _EVENT):
            headers[name] = _header(delivery, name) or str(uuid4())
        return signing.sent(delivery, headers)

    def new_secret(self) -> str:
        return random.token_hex(32)


def _header(delivery: Delivery, name: str) -> str | None:
    """Its newer events have the same headers without the `X-`."""
    return delivery.header(name) or delivery.header(name.removeprefix("X-"))
