"""GoCardless: `Webhook-Signature` over the body, which is a batch of events."""

from __future__ import annotations

import secrets as random
from collections.abc import Sequence

from oncekey.webhooks import identifiers, signing
from oncekey.webhooks.delivery import Delivery, Event

_HEADER = "Webhook-Signature"


class GoCardless:
    name = "gocardless"

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: float) -> Event:
        given = signing.required(delivery, _HEADER)
        signing.check([given], delivery.body, signing.keys_of(secrets))
        events = identifiers.slices_of(delivery.body, "events")
        return Event(delivery, identifiers.batch_of(events, "id"))

    def sign(self, delivery: Delivery, secret: str, now: float) -> Delivery:
        signature = signing.mac(signing.octets(secret), delivery.body).hex()
        return signing.sent(delivery, {_HEADER: signature})

    def new_secret(self) -> str:
        return random.token_urlsafe(30)
