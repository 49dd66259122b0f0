"""What holds for every provider: its own signature passes, anything else does not."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oncekey.core.errors import IdentifierMissing, InvalidInput, SignatureInvalid
from oncekey.webhooks.delivery import Delivery, Event
from oncekey.webhooks.providers.registry import providers_of
from tests.fixtures.deliveries import (
    DECLARED,
    NOW,
    PROVIDERS,
    SAMPLES,
    URL,
    secret_of,
    signed,
)

NAMES = sorted(PROVIDERS)
SIGNATURES = {
    "acme": b"x-acme-signature",
    "covered": b"x-sign",
    "fielded": b"x-sign",
    "github": b"x-hub-signature-256",
    "gocardless": b"webhook-signature",
    "paypal": b"paypal-transmission-sig",
    "shopify": b"x-shopify-hmac-sha256",
    "slack": b"x-slack-signature",
    "square": b"x-square-hmacsha256-signature",
    "standard": b"webhook-signature",
    "stripe": b"stripe-signature",
    "svix": b"svix-signature",
    "timed": b"x-timed-signature",
    "twilio": b"x-twilio-signature",
}
IN_A_HEADER = sorted(SIGNATURES)
TIMED = ["slack", "standard", "svix", "timed"]
BATCHES = ["gocardless", "adyen"]


def verified(name: str, delivery: Delivery, now: float = NOW) -> Event:
    return PROVIDERS[name].verify(delivery, [secret_of(name)], now)


def without(delivery: Delivery, header: bytes) -> Delivery:
    kept = tuple(pair for pair in delivery.headers if pair[0] != header)
    return delivery._replace(headers=kept)


def flipped(text: bytes, bit: int) -> bytes:
    changed = bytearray(text)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize("name", NAMES)
def test_what_it_signs_passes_and_is_named(name: str) -> None:
    sample = SAMPLES[name]
    delivery = signed(name)
    event = verified(name, delivery)
    assert tuple(item.identifier for item in event.items) == sample.names
    assert {item.signed for item in event.items} == {sample.is_signed}
    assert event.delivery == delivery
    assert event.reply is None
    if name not in BATCHES:
        assert [item.body for item in event.items] == [sample.body]


@pytest.mark.parametrize("name", NAMES)
def test_an_older_secret_passes_while_it_is_kept(name: str) -> None:
    other = PROVIDERS[name].new_secret()
    secrets = [other, secret_of(name)]
    assert PROVIDERS[name].verify(signed(name), secrets, NOW).items
    with pytest.raises(SignatureInvalid):
        PROVIDERS[name].verify(signed(name), [other], NOW)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("secrets", [[], [""], ["  "], ["sk:"], ["whsec_"], ["whpk_"], ["zz:é"]])
def test_no_secret_verifies_nothing(name: str, secrets: list[str]) -> None:
    with pytest.raises(SignatureInvalid):
        PROVIDERS[name].verify(signed(name), secrets, NOW)


@pytest.mark.parametrize("name", ["gocardless", "github", "shopify", "slack", "square", "stripe"])
@pytest.mark.parametrize("empty", ["", "  "])
def test_what_is_signed_with_nothing_is_signed_by_nobody(name: str, empty: str) -> None:
    """Everybody has an empty secret."""
    sample = Delivery(URL, (), SAMPLES[name].body)
    with pytest.raises(SignatureInvalid):
        PROVIDERS[name].verify(PROVIDERS[name].sign(sample, empty, NOW), [empty], NOW)


@pytest.mark.parametrize("name", ["slack", "stripe"])
@pytest.mark.parametrize("spelling", ["+{}", "0_{}", "-{}", "{}.0", "9" * 400])
def test_a_time_is_digits_and_few_of_them(name: str, spelling: str) -> None:
    """A second spelling of it would make two deliveries of one, which have one signature."""
    delivery = signed(name)
    told = str(int(NOW)).encode()
    headers = tuple(
        (line, value.replace(told, spelling.format(told.decode()).encode(), 1))
        for line, value in delivery.headers
    )
    assert headers != delivery.headers
    with pytest.raises(SignatureInvalid):
        verified(name, delivery._replace(headers=headers))


@pytest.mark.parametrize("name", NAMES)
def test_a_new_secret_is_another_each_time(name: str) -> None:
    assert PROVIDERS[name].new_secret() != secret_of(name)


@pytest.mark.parametrize("name", IN_A_HEADER)
def test_without_its_signature_it_is_refused(name: str) -> None:
    with pytest.raises(SignatureInvalid):
        verified(name, without(signed(name), SIGNATURES[name]))


@pytest.mark.parametrize("name", IN_A_HEADER)
def test_two_lines_of_the_signature_are_refused(name: str) -> None:
    delivery = signed(name)
    line = next(pair for pair in delivery.headers if pair[0] == SIGNATURES[name])
    with pytest.raises(SignatureInvalid, match="2 lines"):
        verified(name, delivery._replace(headers=(*delivery.headers, line)))


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=40)
def test_no_bit_of_the_body_can_be_changed(name: str, data: st.DataObject) -> None:
    delivery = signed(name)
    bit = data.draw(st.integers(0, len(delivery.body) * 8 - 1))
    body = flipped(delivery.body, bit)
    if name == "adyen":
        fields = (
            r'"(?:pspReference|merchantReference|eventCode|success|value|currency)": ?"?([^",}]+)'
        )
        spans = [found.span(1) for found in re.finditer(fields, delivery.body.decode())]
        if not any(start <= bit // 8 < end for start, end in spans):
            return  # what it does not sign is not its to protect
    with pytest.raises(SignatureInvalid):
        verified(name, delivery._replace(body=body))


@pytest.mark.parametrize("name", IN_A_HEADER)
@given(data=st.data())
@settings(max_examples=40)
def test_no_bit_of_the_signature_can_be_changed(name: str, data: st.DataObject) -> None:
    delivery = signed(name)
    value = dict(delivery.headers)[SIGNATURES[name]]
    changed = flipped(value, data.draw(st.integers(0, len(value) * 8 - 1)))
    headers = tuple((SIGNATURES[name], changed) if pair[0] == SIGNATURES[name] else pair
                    for pair in delivery.headers)  # fmt: skip
    with pytest.raises(SignatureInvalid):
        verified(name, delivery._replace(headers=headers))


@pytest.mark.parametrize("name", TIMED)
def test_what_is_signed_ages(name: str) -> None:
    window = 60 if name == "timed" else 300
    delivery = signed(name)
    for allowed in (-window, window):
        assert verified(name, delivery, NOW + allowed).items
    for late in (-window - 1, window + 1):
        with pytest.raises(SignatureInvalid, match="timestamp is"):
            verified(name, delivery, NOW + late)


def test_stripe_ages_but_may_be_ahead() -> None:
    delivery = signed("stripe")
    assert verified("stripe", delivery, NOW + 300).items
    assert verified("stripe", delivery, NOW - 86400).items
    with pytest.raises(SignatureInvalid, match="301 s old"):
        verified("stripe", delivery, NOW + 301)


@pytest.mark.parametrize("name", ["square", "twilio", "fielded"])
def test_the_url_is_signed(name: str) -> None:
    with pytest.raises(SignatureInvalid):
        verified(name, signed(name)._replace(url=URL + "?x=1"))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_given_to_what_has_none_when_it_is_signed(name: str) -> None:
    delivery = Delivery(URL, (), SAMPLES[name].body)
    assert verified(name, signed(name, delivery)).items[0].identifier


BAD = [None, "", " ", 7, True, ["a"], "x" * 256, "a\nb", "a\x00", "a\u200bb", "\x7f"]
PLACES = {
    "stripe": lambda value: {"id": value},
    "square": lambda value: {"event_id": value},
    "slack": lambda value: {"event_id": value},
    "paypal": lambda value: {"id": value},
    "gocardless": lambda value: {"events": [{"id": "EV1"}, {"id": value}]},
    "timed": lambda value: {"event": {"id": [] if value == 7 else value}},
}


@pytest.mark.parametrize("value", BAD, ids=repr)
@pytest.mark.parametrize("name", sorted(PLACES))
def test_a_name_that_cannot_be_a_key_is_none(name: str, value: object) -> None:
    body = json.dumps(PLACES[name](value)).encode()
    with pytest.raises(IdentifierMissing):
        verified(name, signed(name, Delivery(URL, (), body)))


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'"text"', b"null", b"\xff\xfe", b"[" * 100_000]
)
@pytest.mark.parametrize("name", ["stripe", "gocardless", "timed", "paypal"])
def test_a_signed_body_that_is_not_what_it_should_be_has_no_name(name: str, body: bytes) -> None:
    with pytest.raises(IdentifierMissing):
        verified(name, signed(name, Delivery(URL, (), body)))


@pytest.mark.parametrize("events", [[], {}, None, [1], [{}], [{"id": ""}]])
def test_a_batch_without_events_has_no_name(events: object) -> None:
    body = json.dumps({"events": events}).encode()
    with pytest.raises(IdentifierMissing):
        verified("gocardless", signed("gocardless", Delivery(URL, (), body)))


def test_an_event_of_a_batch_is_cut_out_of_it_byte_for_byte() -> None:
    body = b'{"events": [ {"id":"EV1", "n": 1.10} ,{"id":"EV2"}, {"id":"EV1"}], "meta": {}}'
    items = verified("gocardless", signed("gocardless", Delivery(URL, (), body))).items
    assert [item.body for item in items] == [b'{"id":"EV1", "n": 1.10}', b'{"id":"EV2"}']


def test_a_declared_provider_cannot_take_a_name_that_is_known() -> None:
    with pytest.raises(InvalidInput, match="provider acme: there is one of that name"):
        providers_of([*DECLARED, DECLARED[0]])
    assert "acme" in providers_of(DECLARED)
    assert "acme" not in providers_of()
