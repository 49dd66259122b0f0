"""Adyen: notifications that are signed one by one, inside a body that is not signed as a whole."""

import json
from typing import Any

import pytest

from oncekey.core.errors import IdentifierMissing, InvalidInput, SignatureInvalid
from oncekey.webhooks.delivery import Delivery, Event
from oncekey.webhooks.providers.adyen import Adyen
from tests.fixtures.deliveries import NOW, URL, notification

ADYEN = Adyen()
SECRET = "44782DEF547AAA06C910C43932B1EB0C"


def signed(*items: dict[str, Any]) -> Any:
    body = json.dumps({"live": "false", "notificationItems": items}).encode()
    return json.loads(ADYEN.sign(Delivery(URL, (), body), SECRET, NOW).body)


def verified(document: object) -> Event:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return ADYEN.verify(Delivery(URL, (), body), [SECRET], NOW)


def first(document: Any) -> dict[str, Any]:
    item: dict[str, Any] = document["notificationItems"][0]["NotificationRequestItem"]
    return item


def test_every_notification_must_be_signed() -> None:
    document = signed(notification("a"), notification("b"))
    assert len(verified(document).items) == 2
    for spoiled in (0, 1):
        document = signed(notification("a"), notification("b"))
        item = document["notificationItems"][spoiled]["NotificationRequestItem"]
        del item["additionalData"]
        with pytest.raises(SignatureInvalid, match="hmacSignature"):
            verified(document)


def test_an_item_is_the_notification_alone() -> None:
    document = signed(notification("a"), notification("b", success="false"))
    one, two = verified(document).items
    assert (one.identifier, two.identifier) == ("a:AUTHORISATION:true", "b:AUTHORISATION:false")
    assert json.loads(one.body) == first(document)


def test_the_same_notification_twice_is_one() -> None:
    assert len(verified(signed(notification("a"), notification("a"))).items) == 1


def test_a_colon_in_the_reference_of_the_merchant_is_allowed_there_only() -> None:
    document = signed(notification("a", merchantReference="order:1:2"))
    assert verified(document).items[0].identifier == "a:AUTHORISATION:true"
    # The same signed text, taken apart at other colons.
    item = first(document)
    item |= {"pspReference": "a:", "originalReference": "Shop", "merchantAccountCode": "order"}
    item |= {"merchantReference": "1:2"}
    with pytest.raises(SignatureInvalid, match="pspReference"):
        verified(document)


@pytest.mark.parametrize(
    "changed",
    [
        {"success": True},
        {"success": "yes"},
        {"success": None},
        {"amount": {"value": "1130", "currency": "EUR"}},
        {"amount": {"value": True, "currency": "EUR"}},
        {"amount": {"value": 1130.0, "currency": "EUR"}},
        {"amount": None},
        {"eventCode": None},
        {"eventCode": ["AUTHORISATION"]},
        {"pspReference": {"a": 1}},
        {"additionalData": []},
        {"additionalData": {"hmacSignature": 5}},
        {"additionalData": {"hmacSignature": "é\ud83d\ude80"}},
    ],
    ids=str,
)
def test_what_is_not_as_it_was_signed_is_refused(changed: dict[str, Any]) -> None:
    document = signed(notification("a"))
    first(document).update(changed)
    with pytest.raises(SignatureInvalid):
        verified(document)


def test_without_a_reference_it_has_no_name() -> None:
    with pytest.raises(IdentifierMissing, match="pspReference"):
        verified(signed(notification("")))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"notificationItems": []}',
        b'{"notificationItems": {}}',
        b'{"notificationItems": [{}]}',
        b'{"notificationItems": [{"NotificationRequestItem": 1}]}',
        b'{"notificationItems": ' + b"[" * 99_999,
        b'{"n": NaN}',
        b'{"n": 1e999}',
        b'{"n": "\\ud800"}',
        b'{"n": ' + b"1" * 5000 + b"}",
        b"\xff",
    ],
    ids=lambda body: body[:40].decode("latin-1"),
)
def test_without_a_notification_nothing_is_signed(body: bytes) -> None:
    with pytest.raises(SignatureInvalid):
        verified(body)


def test_what_could_be_read_in_two_ways_is_refused() -> None:
    text = json.dumps(signed(notification("a")))
    assert verified(text.encode()).items
    for member in (
        '"pspReference": "evil", "pspReference":',
        '"psp\\u0052eference": "evil", "pspReference":',
    ):
        with pytest.raises(SignatureInvalid, match="one way only"):
            verified(text.replace('"pspReference":', member).encode())


def test_signing_wants_a_key_in_hexadecimal() -> None:
    with pytest.raises(InvalidInput, match="hexadecimal"):
        ADYEN.sign(Delivery(URL, (), b"{}"), "secret", NOW)


def platform(event: object) -> Event:
    body = json.dumps(event).encode()
    delivery = ADYEN.sign(Delivery(URL, (), body), SECRET, NOW)
    return ADYEN.verify(delivery, [SECRET], NOW)


@pytest.mark.parametrize(
    "event, name",
    [
        ({"type": "a.created", "data": {"id": "T1"}}, "a.created:T1"),
        ({"type": "a.updated", "data": {"id": "T1", "sequenceNumber": 4}}, "a.updated:T1:4"),
        (
            {"type": "a.updated", "data": {"id": "T1"}, "timestamp": "2026-01-01T00:00:00Z"},
            "a.updated:T1:2026-01-01T00%3A00%3A00Z",
        ),
        ({"type": "a.created", "data": {"id": "T:1"}}, "a.created:T%3A1"),
    ],
)
def test_the_platform_names_what_happened_to_what(event: object, name: str) -> None:
    (item,) = platform(event).items
    assert (item.identifier, item.signed) == (name, True)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "a.updated", "data": {"id": "T1"}},
        {"type": "a.created", "data": {}},
        {"data": {"id": "T1"}},
        {"type": "a.created", "data": ["T1"]},
        [],
    ],
)
def test_a_change_that_cannot_be_told_from_the_next_has_no_name(event: object) -> None:
    with pytest.raises(IdentifierMissing):
        platform(event)


def test_a_notification_is_not_a_signature_of_the_platform() -> None:
    document = signed(notification("a"))
    item = first(document)
    text = "a::Shop:order-1:1130:EUR:AUTHORISATION:true"
    signature = item["additionalData"]["hmacSignature"].encode()
    with pytest.raises(IdentifierMissing):
        ADYEN.verify(Delivery(URL, ((b"hmacsignature", signature),), text.encode()), [SECRET], NOW)
