"""Square: `x-square-hmacsha256-signature` over the URL and the body, which has the identifier."""

from __future__ import annotations

import secrets as random
from collections.abc import Sequence

from oncekey.core.errors import SignatureInvalid
from oncekey.webhooks import identifiers, signing
from oncekey.webhooks.delivery import Delivery, Event, Item

_HEADER = "x-square-hmacsha256-signature"


class Square:
    name = "square"

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: float) -> Event:
        given = signing.required(delivery, _HEADER)
        if not delivery.body:
            raise SignatureInvalid("the body is empty, which Square does not sign")
        signing.check(
            [given], _signed(delivery), signing.keys_of(secrets), encode=signing.as_base64
        )
        event = identifiers.json_of(delivery.body)
        identifier = identifiers.text_of(identifiers.member_of(event, "event_id"), "event_id")
        return Event(delivery, (Item(identifier, delivery.body),))

    def sign(self, delivery: Delivery, secret: str, now: float) -> Delivery:
        digest = signing.mac(signing.octets(secret), _signed(delivery))
        return signing.sent(delivery, {_HEADER: signing.as_base64(digest)})

    def new_secret(self) -> str:
        return random.token_urlsafe(16)


def _signed(delivery: Delivery) -> bytes:
    return signing.octets(delivery.url) + delivery.body
