"""Adyen: standard notifications, each of which has its signature inside it, and those of its
platform, signed as a whole in a header.

Of a standard notification only the fields below are signed; anything else in it can be changed.
"""

from __future__ import annotations

import json
import secrets as random
from collections.abc import Sequence
from typing import Any

from oncekey.core.errors import InvalidInput, SignatureInvalid
from oncekey.webhooks import identifiers, signing
from oncekey.webhooks.delivery import Delivery, Event, Item
from oncekey.wire.strict_json import object_in

_HEADER = "HmacSignature"
_TEXTS = ("pspReference", "originalReference", "merchantAccountCode", "merchantReference")
# The merchant chooses it. Colons in it alone leave one way only to take the signed text apart.
_FREE = "merchantReference"


class Adyen:
    name = "adyen"

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: float) -> Event:
        keys = [key for key in map(signing.bytes_of_hex, secrets) if key]
        given = delivery.header(_HEADER)
        if given is not None:
            signing.check([given], delivery.body, keys, encode=signing.as_base64)
            return Event(delivery, (Item(_platform_name(delivery.body), delivery.body),))
        notifications = _notifications_in(_document_of(delivery.body))
        for each in notifications:
            _check(each, keys)
        items = {
            name: Item(name, _written(each)) for each in notifications if (name := _name(each))
        }
        return Event(delivery, tuple(items.values()))

    def sign(self, delivery: Delivery, secret: str, now: float) -> Delivery:
        key = signing.bytes_of_hex(secret)
        if not key:
            raise InvalidInput("a secret of Adyen is hexadecimal")
        if b'"notificationItems"' not in delivery.body:
            signature = signing.as_base64(signing.mac(key, delivery.body))
            return signing.sent(delivery, {_HEADER: signature, "Protocol": "HmacSHA256"})
        document = _document_of(delivery.body)
        for each in _notifications_in(document):
            signature = signing.as_base64(signing.mac(key, _signed(each)))
            each["additionalData"] = {**each.get("additionalData", {}), "hmacSignature": signature}
        return signing.sent(delivery, {}, body=_written(document))

    def new_secret(self) -> str:
        return random.token_hex(32).upper()


def _document_of(body: bytes) -> dict[str, Any]:
    """Read before it is verified, as its signatures are inside. What can be read in two ways is
    refused: it would be verified in one and used in the other."""
    try:
        document = object_in(body)
        _written(document)
    except (ValueError, RecursionError):
        raise SignatureInvalid("the body is not JSON that can be read in one way only") from None
    return document


def _written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _notifications_in(document: Any) -> list[dict[str, Any]]:
    wrapped = identifiers.member_of(document, "notificationItems")
    found = [
        identifiers.member_of(each, "NotificationRequestItem")
        for each in (wrapped if isinstance(wrapped, list) else [])
    ]
    notifications = [each for each in found if isinstance(each, dict)]
    if not notifications or len(notifications) != len(found):
        raise SignatureInvalid(f"there are neither notificationItems nor a header {_HEADER}")
    return notifications


def _check(notification: dict[str, Any], keys: Sequence[bytes]) -> None:
    extra = notification.get("additionalData")
    given = identifiers.member_of(extra, "hmacSignature")
    if not isinstance(given, str):
        raise SignatureInvalid("a notification has no additionalData.hmacSignature")
    signing.check([given], _signed(notification), keys, encode=signing.as_base64)


def _signed(notification: dict[str, Any]) -> bytes:
    amount = notification.get("amount")
    value, currency = (
        identifiers.member_of(amount, "value"),
        identifiers.member_of(amount, "currency"),
    )
    if type(value) is not int or notification.get("success") not in {"true", "false"}:
        raise SignatureInvalid("a notification has no whole amount, or success that is no word")
    texts = {name: notification.get(name) or "" for name in _TEXTS}
    ends = {"currency": currency, "eventCode": notification.get("eventCode")}
    for name, text in (texts | ends).items():
        if not isinstance(text, str) or (":" in text and name != _FREE):
            raise SignatureInvalid(f"{name} of a notification is not text without a colon")
    parts = [*texts.values(), str(value), *ends.values(), notification["success"]]
    return signing.octets(":".join(map(str, parts)))


def _name(notification: dict[str, Any]) -> str:
    for member in ("pspReference", "eventCode"):
        identifiers.text_of(notification.get(member), member)
    parts = (notification[member] for member in ("pspReference", "eventCode", "success"))
    return identifiers.text_of(":".join(parts), "pspReference with eventCode and success")


def _platform_name(body: bytes) -> str:
    """What happened to what. Something is created once, but changes many times: then the number of
    the change, or when it happened, is part of the name."""
    event = identifiers.json_of(body)
    data = identifiers.member_of(event, "data")
    kind = identifiers.text_of(identifiers.member_of(event, "type"), "type")
    parts = [kind, identifiers.text_of(identifiers.member_of(data, "id"), "data/id")]
    if not kind.endswith(".created"):
        change = identifiers.member_of(data, "sequenceNumber")
        moment = identifiers.member_of(event, "timestamp")
        if type(change) is int:
            parts.append(str(change))
        else:
            parts.append(identifiers.text_of(change or moment, "data/sequenceNumber or timestamp"))
    return identifiers.text_of(identifiers.joined(parts), "type with data/id")
