"""Twilio: forms whose fields run into each other when they are signed, and batches of events."""

import json
from itertools import combinations
from urllib.parse import urlencode

import pytest

from oncekey.core.errors import IdentifierMissing, InvalidInput, SignatureInvalid
from oncekey.webhooks.delivery import Delivery, Event
from oncekey.webhooks.providers import twilio_fields
from oncekey.webhooks.providers.twilio import Twilio
from tests.fixtures.deliveries import NOW, SID, URL

TOKEN = "12345"
TWILIO = Twilio()
STATUS = {
    "AccountSid": "AC0",
    "ApiVersion": "2010-04-01",
    "From": "+15017122661",
    "MessageSid": SID,
    "MessageStatus": "sent",
    "SmsSid": SID,
    "SmsStatus": "sent",
    "To": "+15558675310",
}
FORM = b"application/x-www-form-urlencoded"


def form(fields: dict[str, str], **headers: str) -> Delivery:
    pairs = tuple(
        (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
    )
    return Delivery(URL, pairs, urlencode(fields).encode())


def signed(delivery: Delivery, secret: str = TOKEN) -> Delivery:
    return TWILIO.sign(delivery, secret, NOW)


def verified(delivery: Delivery, *secrets: str) -> Event:
    return TWILIO.verify(delivery, secrets or (TOKEN,), NOW)


def name_of(fields: dict[str, str]) -> str:
    (item,) = verified(signed(form(fields))).items
    assert item.signed
    return item.identifier


def test_the_token_comes_first_and_is_not_signed() -> None:
    event = verified(signed(form(STATUS, i_twilio_idempotency_token="tok-1")))
    (item,) = event.items
    assert (item.identifier, item.signed) == ("tok-1", False)


@pytest.mark.parametrize(
    "fields, name",
    [
        ({"MessageSid": SID, "SmsStatus": "received", "Body": "hi"}, f"{SID}:received"),
        ({"SmsSid": SID, "SmsStatus": "sent"}, f"{SID}:sent"),
        ({"CallSid": "CA1", "CallStatus": "completed"}, "CA1:completed"),
        ({"CallSid": "CA1", "CallStatus": "ringing", "Direction": "inbound"}, "CA1:ringing"),
        (
            {
                "CallSid": "CA1",
                "CallStatus": "in-progress",
                "CallbackSource": "call-progress-events",
            },
            "CA1:in-progress",
        ),
        (
            {"CallSid": "CA1", "RecordingSid": "RE1", "RecordingStatus": "completed"},
            "RE1:completed",
        ),
        (
            {"CallSid": "CA1", "RecordingSid": "RE1", "RecordingStatus": "in-progress"},
            "RE1:in-progress",
        ),
    ],
)
def test_what_it_is_about_and_what_became_of_it_are_the_name(
    fields: dict[str, str], name: str
) -> None:
    assert name_of(fields) == name


@pytest.mark.parametrize(
    "fields",
    [
        {"CallSid": "CA1"},
        {"CallSid": "CA1", "CallStatus": "in-progress", "Digits": "1"},
        {"MessageSid": SID},
        {"MessageSid": SID, "MessageStatus": "abducted"},
        {"MessageSid": "", "MessageStatus": "sent"},
        {"MessageSid": "not a sid", "MessageStatus": "sent"},
        {"MessageStatus": "sent"},
    ],
)
def test_half_a_name_is_none(fields: dict[str, str]) -> None:
    with pytest.raises(IdentifierMissing):
        name_of(fields)


def test_a_field_that_is_there_twice_names_nothing() -> None:
    body = f"MessageSid={SID}&MessageSid=SM2&MessageStatus=sent".encode()
    with pytest.raises(IdentifierMissing):
        verified(signed(Delivery(URL, (), body)))


def resplit() -> list[dict[str, str]]:
    """Every form with the same signature in which up to three ends of fields were moved."""
    text = "".join(name + value for name, value in STATUS.items())
    starts = [text.index(name + STATUS[name]) for name in STATUS]
    ends = [start + len(name) for start, name in zip(starts, STATUS, strict=True)]
    found = []
    for dropped in [
        (),
        *((each,) for each in range(1, len(STATUS))),
        *combinations(range(1, len(STATUS)), 2),
    ]:
        cuts = [
            (s, e) for at, (s, e) in enumerate(zip(starts, ends, strict=True)) if at not in dropped
        ]
        for at in range(len(cuts)):
            for shift in (-3, -1, 1, 3):
                moved = list(cuts)
                moved[at] = (cuts[at][0], cuts[at][1] + shift)
                found += [cuts, moved]
                if at and cuts[at][0] + shift > cuts[at - 1][1]:
                    moved = list(cuts)
                    moved[at] = (cuts[at][0] + shift, cuts[at][1])
                    found.append(moved)
    forms = []
    for cuts in found:
        stops = [start for start, _ in cuts[1:]] + [len(text)]
        fields = {
            text[s:e]: text[e:stop] for (s, e), stop in zip(cuts, stops, strict=True) if s < e
        }
        if list(fields) == sorted(fields) and "".join(k + v for k, v in fields.items()) == text:
            forms.append(fields)
    return forms


def test_moving_the_ends_of_fields_gives_no_other_name() -> None:
    delivery = signed(form(STATUS))
    forms = resplit()
    assert len(forms) > 100
    for fields in forms:
        other = delivery._replace(body=urlencode(fields).encode())
        try:
            event = verified(other)
        except IdentifierMissing:
            continue
        assert event.items[0].identifier == f"{SID}:sent", fields


def test_what_one_signature_covers_is_one_proof_under_any_token() -> None:
    delivery = signed(form(STATUS, i_twilio_idempotency_token="tok-1"))
    merged = {name: value for name, value in STATUS.items() if name != "To"}
    merged["SmsStatus"] += "To" + STATUS["To"]
    headers = tuple(
        (name, b"tok-2" if name == b"i-twilio-idempotency-token" else value)
        for name, value in delivery.headers
    )
    again = verified(delivery._replace(headers=headers, body=urlencode(merged).encode()))
    assert again.items[0].identifier == "tok-2"
    assert again.proof == verified(delivery).proof


EVENTS = [
    {"specversion": "1.0", "id": "EZ1", "data": {"n": 1}},
    {"specversion": "1.0", "id": "EZ2"},
]


def streamed(value: object, **headers: str) -> Delivery:
    pairs = tuple(
        (name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()
    )
    return signed(Delivery(URL, pairs, json.dumps(value).encode()))


def test_each_event_of_a_stream_is_named() -> None:
    event = verified(streamed(EVENTS))
    assert [item.identifier for item in event.items] == ["EZ1", "EZ2"]
    assert [json.loads(item.body) for item in event.items] == EVENTS
    assert all(item.signed for item in event.items)


def test_a_single_event_is_named_too() -> None:
    assert verified(streamed(EVENTS[0])).items[0].identifier == "EZ1"


def test_a_stream_under_a_token_is_one_thing() -> None:
    event = verified(streamed(EVENTS, i_twilio_idempotency_token="tok-1"))
    (item,) = event.items
    assert (item.identifier, item.signed, item.body) == ("tok-1", False, event.delivery.body)
    assert event.proof == event.delivery.body


@pytest.mark.parametrize("value", [[], {}, [{}], [{"id": 1}], [[]], "EZ1", {"id": "EZ1"}])
def test_json_without_events_has_no_name(value: object) -> None:
    delivery = streamed(value) if value != "EZ1" else streamed([value])
    with pytest.raises(IdentifierMissing):
        verified(delivery)


@pytest.mark.parametrize("body", [b"", b"&", b"&&", b"\xff", b"A=1"])
def test_json_cannot_be_passed_off_as_a_form(body: bytes) -> None:
    delivery = streamed(EVENTS, i_twilio_idempotency_token="tok-1")
    headers = tuple(
        (name, FORM if name == b"content-type" else value) for name, value in delivery.headers
    )
    with pytest.raises(SignatureInvalid):
        verified(delivery._replace(headers=headers, body=body))


def test_a_body_that_nothing_covers_is_refused() -> None:
    asked = signed(Delivery(f"{URL}?MessageSid=SM1&MessageStatus=sent", (), b""))
    assert verified(asked).items[0].identifier == "SM1:sent"
    for body in (b"&", b"{}"):
        with pytest.raises(SignatureInvalid):
            verified(asked._replace(body=body))
    with pytest.raises(SignatureInvalid, match="bodySHA256"):
        verified(
            asked._replace(headers=(*asked.headers[1:], (b"content-type", b"application/json")))
        )


def test_the_form_of_a_shared_key_says_how_it_signs() -> None:
    strong, weak, plain = "sk:key_1:sha256:abc", "sk:key_1:sha1:abc", "abc"
    delivery = signed(form(STATUS), strong)
    settings = dict(delivery.headers)[b"x-twilio-webhooks-signature-settings"]
    assert settings == b"key=key_1,algorithm=HMAC_SHA256"
    assert verified(delivery, strong).items
    for other in (weak, plain):
        with pytest.raises(SignatureInvalid):
            verified(delivery, other)
    # What it says in the header about how it is signed is anybody's word.
    with pytest.raises(SignatureInvalid):
        verified(signed(form(STATUS), weak), strong)
    assert verified(signed(form(STATUS), plain), weak).items


@pytest.mark.parametrize("secret", ["", "sk:", "sk:id:md5:abc", "sk:id:sha256:", "sk::sha256:abc"])
def test_half_a_shared_key_is_none(secret: str) -> None:
    with pytest.raises(InvalidInput, match="sk:ID:sha256:KEY"):
        signed(form(STATUS), secret)
    with pytest.raises(SignatureInvalid):
        verified(signed(form(STATUS)), secret)


def test_no_status_is_the_beginning_of_another() -> None:
    words = {word for _, _, known in twilio_fields._KINDS for word in known}
    assert [
        (one, two) for one in words for two in words if one != two and two.startswith(one)
    ] == []
