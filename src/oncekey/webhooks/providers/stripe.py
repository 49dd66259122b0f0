"""Stripe: `Stripe-Signature: t=…,v1=…` over the time and the body, which has the identifier."""

from __future__ import annotations

import secrets as random
from collections.abc import Sequence

from oncekey.core.errors import SignatureInvalid
from oncekey.webhooks import identifiers, signing
from oncekey.webhooks.delivery import Delivery, Event, Item

_HEADER = "Stripe-Signature"


class Stripe:
    name = "stripe"

    def __init__(self, tolerance: float = signing.TOLERANCE) -> None:
        """Seconds that a delivery may be old; 0 allows any age."""
        self._tolerance = tolerance or float("inf")

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: float) -> Event:
        moment, given = _parts_of(signing.required(delivery, _HEADER))
        signing.check(given, _signed(moment, delivery.body), signing.keys_of(secrets))
        # Only Stripe can sign a time to come, and its own libraries allow any.
        signing.check_age(moment, now, past=self._tolerance, future=None)
        event = identifiers.json_of(delivery.body)
        identifier = identifiers.text_of(identifiers.member_of(event, "id"), "id")
        return Event(delivery, (Item(identifier, delivery.body),))

    def sign(self, delivery: Delivery, secret: str, now: float) -> Delivery:
        moment = int(now)
        signature = signing.mac(signing.octets(secret), _signed(moment, delivery.body)).hex()
        return signing.sent(delivery, {_HEADER: f"t={moment},v1={signature}"})

    def new_secret(self) -> str:
        return f"whsec_{random.token_hex(16)}"


def _parts_of(header: str) -> tuple[int, list[str]]:
    """Without trimming, as Stripe's libraries do it: ` v1` is no `v1`."""
    parts = [part.partition("=") for part in header.split(",")]
    moments = [value for name, _, value in parts if name == "t"]
    given = [value for name, _, value in parts if name == "v1"]
    if not moments or not given:
        raise SignatureInvalid(f"{_HEADER} has no t or no v1")
    return signing.seconds_of(moments[0]), given


def _signed(moment: int, body: bytes) -> bytes:
    return b"%d.%b" % (moment, body)
