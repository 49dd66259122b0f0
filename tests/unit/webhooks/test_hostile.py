"""Whatever comes in, a provider says one of two things about it, and nothing else goes wrong."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oncekey.core.errors import IdentifierMissing, InvalidInput, SignatureInvalid
from oncekey.webhooks.delivery import Delivery
from tests.fixtures.deliveries import NOW, PROVIDERS, SAMPLES, URL, secret_of, signed

NAMES = sorted(PROVIDERS)
# Beside those that a signed delivery has.
OTHER_HEADERS = (b"hmacsignature", b"i-twilio-idempotency-token", b"webhook-id", b"content-type")
SNIPPETS = (
    *(
        b"t=1767225600",
        b"v1=",
        b"v1,",
        b"v1a,",
        b"sha256=",
        b"v0=",
        b",",
        b" ",
        b"=",
        b"1767225600",
    ),
    *(b"nan", b"1e999", b"-1", b"9" * 400, b"\xff", b"\x00", b"application/json", b"%%%", b"AAAA"),
    b"application/x-www-form-urlencoded",
)
values = st.lists(st.sampled_from(SNIPPETS) | st.binary(max_size=20), max_size=6).map(b"".join)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
members = st.sampled_from(
    "id event_id events event type challenge notificationItems NotificationRequestItem amount "
    "value currency success pspReference eventCode additionalData hmacSignature specversion".split()
)
documents = st.recursive(
    json_values | st.sampled_from(["true", "url_verification", "1.0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(members, inner, max_size=8),
    max_leaves=12,
).map(lambda value: json.dumps(value).encode())
bodies = st.binary(max_size=60) | documents | st.sampled_from([b"[" * 9999, b"&", b"%ff=%", b"=&="])
urls = st.sampled_from([URL, "", "https://[", "https://h:99999/", URL + "?bodySHA256=", "://"]) | (
    st.text(max_size=40)
)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=80)
def test_what_nobody_signed_is_refused(name: str, data: st.DataObject) -> None:
    names = (*dict(signed(name).headers), *OTHER_HEADERS)
    headers = tuple((each, data.draw(values)) for each in names if data.draw(st.booleans()))
    delivery = Delivery(data.draw(urls), headers, data.draw(bodies))
    with pytest.raises((SignatureInvalid, IdentifierMissing)) as refused:
        PROVIDERS[name].verify(delivery, [secret_of(name)], NOW)
    assert secret_of(name) not in str(refused.value)
    assert isinstance(refused.value, SignatureInvalid), "it was believed before it was verified"


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=80)
def test_what_is_signed_has_usable_names_or_none(name: str, data: st.DataObject) -> None:
    named = [each for each, _ in SAMPLES[name].headers]
    headers = tuple((each, data.draw(values)) for each in named)
    delivery = Delivery(URL, headers, data.draw(bodies))
    with suppress(IdentifierMissing, SignatureInvalid, InvalidInput):
        sent = PROVIDERS[name].sign(delivery, secret_of(name), NOW)
        event = PROVIDERS[name].verify(sent, [secret_of(name)], NOW)
        assert event.items or event.reply is not None
        for item in event.items:
            assert 0 < len(item.identifier) <= 255
            assert item.identifier.isprintable()


@given(text=st.text())
def test_any_text_may_be_a_secret(text: str) -> None:
    for name in NAMES:
        if text != secret_of(name):
            with pytest.raises(SignatureInvalid):
                PROVIDERS[name].verify(signed(name), [text], NOW)


@pytest.mark.parametrize("name", ["standard", "stripe", "svix"])
def test_many_signatures_are_not_all_looked_at(name: str) -> None:
    header = {"stripe": b"stripe-signature"}.get(name, name.replace("standard", "webhook").encode())
    header = header if name == "stripe" else header + b"-signature"
    delivery = signed(name)
    value = dict(delivery.headers)[header]
    wrong = b",v1=00" if name == "stripe" else b" v1,00"
    for count, passes in ((15, True), (16, False)):
        headers = tuple(
            (each, value + wrong * count if each == header else line)
            for each, line in delivery.headers
        )
        many = delivery._replace(headers=headers)
        if passes:
            assert PROVIDERS[name].verify(many, [secret_of(name)], NOW).items
        else:
            with pytest.raises(SignatureInvalid, match="17 signatures"):
                PROVIDERS[name].verify(many, [secret_of(name)], NOW)
