"""Providers that are declared: what they may say, and which of their identifiers are signed."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from oncekey.core.errors import IdentifierMissing, InvalidInput, SignatureInvalid
from oncekey.webhooks.delivery import Delivery, Event
from oncekey.webhooks.providers.declared import (
    Declared,
    DeclaredProvider,
    IdentifierAt,
    SignatureAt,
    TimestampAt,
)
from oncekey.webhooks.providers.pointer import parse_pointer, resolve_pointer
from tests.fixtures.deliveries import NOW, URL

SECRET = "s3cret"
BY_HEADER = IdentifierAt(header="X-Id")
TIMED = TimestampAt("X-Time")


def declared(identifier: IdentifierAt = BY_HEADER, **signature: Any) -> Declared:
    return Declared(DeclaredProvider("acme", identifier, SignatureAt("X-Sign", **signature)))


def verified(provider: Declared, body: bytes, *headers: tuple[bytes, bytes]) -> Event:
    delivery = provider.sign(Delivery(URL, headers, body), SECRET, NOW)
    return provider.verify(delivery, [SECRET], NOW)


def replaced(delivery: Delivery, name: bytes, value: bytes) -> Delivery:
    pairs = tuple((k, value if k == name else v) for k, v in delivery.headers)
    return delivery._replace(headers=pairs)


@pytest.mark.parametrize(
    "algorithm, encoding, begins",
    [
        ("hmac-sha256", "hex", "v=63d7d468988fe3de60e994cf"),
        ("hmac-sha1", "base64", "v=0oZAKnwH9ZjQltkELUGAlUPt"),
        ("hmac-sha512", "base64url", "v=YKpwYxD7lh5_bkMhKNIcptN0"),
    ],
)
def test_a_signature_is_written_as_declared(algorithm: str, encoding: str, begins: str) -> None:
    provider = declared(algorithm=algorithm, encoding=encoding, prefix="v=")
    delivery = provider.sign(Delivery(URL, (), b"body"), SECRET, NOW)
    signature = dict(delivery.headers)[b"x-sign"].decode()
    assert signature.startswith(begins)
    assert provider.verify(delivery, [SECRET], NOW).items
    for wrong in (signature.removeprefix("v="), signature.upper(), signature + "0"):
        with pytest.raises(SignatureInvalid):
            provider.verify(replaced(delivery, b"x-sign", wrong.encode()), [SECRET], NOW)


@pytest.mark.parametrize(
    "signed, timestamp, is_signed",
    [
        ("body", None, False),
        ("{url}{body}", None, False),
        ("{timestamp}.{body}", TIMED, False),
        ("{header:X-Id}.{timestamp}.{body}", TIMED, True),
        ("{header:x-id}.{body}", None, True),
        ("{header:X-Other}.{body}", None, False),
        ("{body}.{header:X-ID}", None, True),
        ("{method}{url}{body}{timestamp}", TIMED, False),
    ],
)
def test_a_header_is_signed_where_it_is_in_what_is_signed(
    signed: str, timestamp: TimestampAt | None, is_signed: bool
) -> None:
    provider = declared(signed=signed, timestamp=timestamp)
    delivery = Delivery(URL, ((b"x-id", b"d-1"), (b"x-other", b"o")), b'{"a": 1}')
    delivery = provider.sign(delivery, SECRET, NOW)
    (item,) = provider.verify(delivery, [SECRET], NOW).items
    assert (item.identifier, item.signed) == ("d-1", is_signed)
    forged = replaced(delivery, b"x-id", b"d-2")
    if is_signed:
        with pytest.raises(SignatureInvalid):
            provider.verify(forged, [SECRET], NOW)
    else:
        event = provider.verify(forged, [SECRET], NOW)
        assert event.proof == provider.verify(delivery, [SECRET], NOW).proof


@pytest.mark.parametrize(
    "signed, moved",
    [
        ("{header:X-Id}.{body}", (b"d.1", b"2")),
        ("{header:X-Id}--{body}", (b"d-", b"1-2")),
        ("{body}.{header:X-Id}", (b"1.2", b"d")),
    ],
)
def test_what_is_signed_can_be_taken_apart_in_one_way_only(
    signed: str, moved: tuple[bytes, bytes]
) -> None:
    provider = declared(signed=signed)
    with pytest.raises(SignatureInvalid, match="what ends it"):
        verified(provider, moved[1], (b"x-id", moved[0]))


def test_seconds_and_milliseconds_are_told_apart() -> None:
    provider = declared(signed="{timestamp}.{body}", timestamp=TimestampAt("X-Time", 10.0))
    for moment, passes in ((NOW, True), (NOW * 1000, True), (NOW - 11, False)):
        text = str(int(moment)).encode()
        delivery = Delivery(URL, ((b"x-time", text), (b"x-id", b"1")), b"{}")
        signature = Declared(
            DeclaredProvider(
                "raw", BY_HEADER, SignatureAt("X-Sign", signed="{header:X-Time}.{body}")
            )
        ).sign(delivery, SECRET, NOW)
        if passes:
            assert provider.verify(signature, [SECRET], NOW).items
        else:
            with pytest.raises(SignatureInvalid, match="11 s old"):
                provider.verify(signature, [SECRET], NOW)


@pytest.mark.parametrize("moment", [b"", b"soon", b"1e9", b"-1", b"nan", b"1" * 16, b"\xd9\xa1"])
def test_a_timestamp_is_a_number(moment: bytes) -> None:
    provider = declared(signed="{timestamp}.{body}", timestamp=TIMED)
    delivery = provider.sign(Delivery(URL, (), b"{}"), SECRET, NOW)
    with pytest.raises(SignatureInvalid):
        provider.verify(replaced(delivery, b"x-time", moment), [SECRET], NOW)


def by_pointer(pointer: str, document: object) -> str:
    body = json.dumps(document).encode()
    (item,) = verified(declared(IdentifierAt(json=pointer)), body).items
    assert item.signed
    return item.identifier


@pytest.mark.parametrize(
    "pointer, document, name",
    [
        ("/id", {"id": "a"}, "a"),
        ("/data/1/id", {"data": [{}, {"id": "b"}]}, "b"),
        ("/a~1b/m~0n", {"a/b": {"m~n": "c"}}, "c"),
        ("/~01", {"~1": "d"}, "d"),
        ("/", {"": "e"}, "e"),
        ("/id", {"id": 820982911946154508}, "820982911946154508"),
    ],
)
def test_a_pointer_leads_to_the_identifier(pointer: str, document: object, name: str) -> None:
    assert by_pointer(pointer, document) == name


@pytest.mark.parametrize(
    "document",
    [{}, [], {"id": None}, {"id": True}, {"id": 1.5}, {"id": {}}, {"id": ""}, "id", {"id": "a\n"}],
    ids=str,
)
def test_a_pointer_that_leads_to_no_text_names_nothing(document: object) -> None:
    with pytest.raises(IdentifierMissing):
        by_pointer("/id", document)


@pytest.mark.parametrize("part", ["-", "01", "+1", "1.0", "9" * 9, "٣", ""])
def test_an_index_is_plain_digits(part: str) -> None:
    assert resolve_pointer(["a", "b"], (part,)) is None
    assert resolve_pointer(["a", "b"], ("1",)) == "b"


def by_form(fields: list[tuple[str, str]]) -> str:
    provider = declared(IdentifierAt(form=("order", "state")))
    return verified(provider, urlencode(fields).encode()).items[0].identifier


def test_fields_are_joined_so_that_no_two_forms_have_one_name() -> None:
    assert by_form([("state", "paid"), ("order", "7")]) == "7:paid"
    one = by_form([("order", "7:a"), ("state", "b")])
    two = by_form([("order", "7"), ("state", "a:b")])
    three = by_form([("order", "7%3Aa"), ("state", "b")])
    assert len({one, two, three}) == 3


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [("order", "7")],
        [("order", ""), ("state", "x")],
        [("order", "1"), ("order", "2"), ("state", "x")],
    ],
)
def test_a_form_without_one_of_each_field_has_no_name(fields: list[tuple[str, str]]) -> None:
    with pytest.raises(IdentifierMissing):
        by_form(fields)


@pytest.mark.parametrize(
    "identifier, signature, message",
    [
        (IdentifierAt(), {}, "one of header, json and form"),
        (IdentifierAt(header="X", json="/id"), {}, "one of header, json and form"),
        (IdentifierAt(header=""), {}, "one of header, json and form"),
        (IdentifierAt(form=()), {}, "one of header, json and form"),
        (IdentifierAt(form=("a", "a")), {}, "each of them once"),
        (IdentifierAt(form=("a", "")), {}, "must name fields"),
        (IdentifierAt(json="id"), {}, "'id' is not a JSON pointer"),
        (IdentifierAt(json="/a~2"), {}, "not a JSON pointer"),
        (BY_HEADER, {"header": ""}, "signature.header is missing"),
        (BY_HEADER, {"algorithm": "md5"}, "algorithm must be one of hmac-sha256, .*not 'md5'"),
        (BY_HEADER, {"encoding": "rot13"}, "encoding must be one of hex"),
        (BY_HEADER, {"signed": "{timestamp}"}, r"have \{body\} once"),
        (BY_HEADER, {"signed": "{body}{body}"}, r"have \{body\} once"),
        (BY_HEADER, {"signed": ""}, r"have \{body\} once"),
        (BY_HEADER, {"signed": "{body"}, "brace"),
        (BY_HEADER, {"signed": "{nonce}.{body}"}, r"\{nonce\} is none of"),
        (BY_HEADER, {"signed": "{header:}.{body}"}, "is none of"),
        (BY_HEADER, {"signed": "{header:X-Id}{body}"}, "nobody can tell where it ends"),
        (BY_HEADER, {"signed": "{body}{header:X-Id}"}, "nobody can tell where it ends"),
        (BY_HEADER, {"signed": "{timestamp}.{body}"}, "signature.timestamp is missing"),
        (BY_HEADER, {"timestamp": TIMED}, "timestamp is not signed"),
        (
            BY_HEADER,
            {"signed": "{timestamp}{body}", "timestamp": TimestampAt("")},
            "timestamp.header is missing",
        ),
        (
            BY_HEADER,
            {"signed": "{timestamp}{body}", "timestamp": TimestampAt("X", 0.0)},
            "tolerance must be above 0",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_its_reason(
    identifier: IdentifierAt, signature: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=f"(?s)^provider acme: .*{message}"):
        DeclaredProvider("acme", identifier, SignatureAt(**{"header": "X-Sign"} | signature))


@pytest.mark.parametrize("name", ["", "Acme", "a b", "a/b", "-a", "1a", "x" * 33, "ä"])
def test_a_name_fits_a_path(name: str) -> None:
    with pytest.raises(InvalidInput, match="the name of a provider"):
        DeclaredProvider(name, BY_HEADER, SignatureAt("X-Sign"))


def test_a_pointer_is_read_as_the_standard_says() -> None:
    assert parse_pointer("/a~1b/~01") == ("a/b", "~1")
