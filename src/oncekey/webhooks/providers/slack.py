"""Slack: `X-Slack-Signature` over the time and the body. Events are named by `event_id`; commands
and interactions, which Slack sends once, by the `trigger_id` of what the user did."""

from __future__ import annotations

import secrets as random
from collections.abc import Sequence

from oncekey.webhooks import identifiers, signing
from oncekey.webhooks.delivery import Delivery, Event, Item

_SIGNATURE = "X-Slack-Signature"
_TIMESTAMP = "X-Slack-Request-Timestamp"


class Slack:
    name = "slack"

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: float) -> Event:
        given = signing.required(delivery, _SIGNATURE)
        moment = signing.required(delivery, _TIMESTAMP)
        signing.check_age(signing.seconds_of(moment), now)
        text = _signed(moment, delivery.body)
        signing.check([given], text, signing.keys_of(secrets), encode=_written)
        if signing.looks_like_json(delivery.body):
            return _event_of(delivery)
        return _interaction_of(delivery)

    def sign(self, delivery: Delivery, secret: str, now: float) -> Delivery:
        moment = str(int(now))
        signature = _written(signing.mac(signing.octets(secret), _signed(moment, delivery.body)))
        return signing.sent(delivery, {_SIGNATURE: signature, _TIMESTAMP: moment})

    def new_secret(self) -> str:
        return random.token_hex(16)


def _signed(moment: str, body: bytes) -> bytes:
    return b"v0:%b:%b" % (moment.encode(), body)


def _written(digest: bytes) -> str:
    return f"v0={digest.hex()}"


def _event_of(delivery: Delivery) -> Event:
    event = identifiers.json_of(delivery.body)
    if identifiers.member_of(event, "type") == "url_verification":
        challenge = identifiers.text_of(identifiers.member_of(event, "challenge"), "challenge")
        return Event(delivery, (), reply=signing.octets(challenge))
    identifier = identifiers.text_of(identifiers.member_of(event, "event_id"), "event_id")
    return Event(delivery, (Item(identifier, delivery.body),))


def _interaction_of(delivery: Delivery) -> Event:
    fields = signing.form_of(delivery.body) or {}
    trigger: object = identifiers.field_of(fields, "trigger_id")
    body = delivery.body
    payload = identifiers.field_of(fields, "payload")
    if payload is not None:
        body = signing.octets(payload)
        trigger = identifiers.member_of(identifiers.json_of(body), "trigger_id")
    return Event(delivery, (Item(identifiers.text_of(trigger, "trigger_id"), body),))
