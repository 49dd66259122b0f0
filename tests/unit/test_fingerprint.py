"""What makes two requests the same: values where they can be compared, bytes where not."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.core.errors import ConfigurationError
from oncekey.core.model import NO_FINGERPRINT
from oncekey.wire.fingerprint import BodyDigest, Fingerprint

JSON = b"application/json"
FORM = b"application/x-www-form-urlencoded"

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abé", max_size=3), inner),
    max_leaves=12,
)  # fmt: skip


def of(
    body: bytes | BodyDigest = b"",
    content_type: bytes = JSON,
    query: bytes = b"",
    path: bytes = b"/a",
    method: str = "POST",
    by: Fingerprint | None = None,
) -> bytes:
    return (by or Fingerprint()).of(method, path, query, content_type, body)


def shuffled(value: Any) -> Any:
    """The same value with the keys of every object the other way round."""
    match value:
        case dict():
            return {key: shuffled(value[key]) for key in reversed(value)}
        case list():
            return [shuffled(each) for each in value]
    return value


@given(values)
def test_json_is_compared_by_value_not_by_bytes(value: Any) -> None:
    plain = json.dumps(value).encode()
    other = json.dumps(shuffled(value), indent=2, ensure_ascii=False).encode()
    assert of(plain) == of(other)


@given(values, values)
def test_other_values_are_other_requests(one: Any, two: Any) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)
    if not same and one != two:
        assert of(json.dumps(one).encode()) != of(json.dumps(two).encode())


@pytest.mark.parametrize(
    "one, two",
    [
        (b'{"a":1,"b":2}', b' { "b" : 2 , "a" : 1 } \n'),
        (b'{"a":{"x":1,"y":2}}', b'{"a":{"y":2,"x":1}}'),
        (b"[1]", b"[1.0]"),
        (b"[1]", b"[1e0]"),
        (b"[1]", b"[1.00000000000000000000000]"),
        (b"[100]", b"[1E+2]"),
        (b"[0]", b"[-0.0]"),
        (b"[0]", b"[0.00000000000000000000e-9]"),
        (b"[5e-324]", b"[ 50e-325 ]"),
        (b"[1e400]", b"[10.0e399]"),
        (b"[1e-400]", b"[0.10e-399]"),
        (b"[1.2345678901234567e9999999]", b"[12.345678901234567e9999998]"),
        (b"[0.1]", b"[1e-1]"),
        (b"[0.1]", b"[0.10000000000000000000000]"),
        (b"[9007199254740993]", b"[9007199254740993.0]"),
        (b'"\\u00e9"', '"é"'.encode()),
        (b'"\\ud83d\\ude00"', '"😀"'.encode()),
        (b'"\\/"', b'"/"'),
        (b'{"a":1,"a":2}', b'{"a":2}'),
    ],
)
def test_these_are_the_same(one: bytes, two: bytes) -> None:
    assert of(one) == of(two)


@pytest.mark.parametrize(
    "one, two",
    [
        (b"[1,2]", b"[2,1]"),
        (b"1", b'"1"'),
        (b"1", b"true"),
        (b"0", b"false"),
        (b"null", b"{}"),
        (b"", b"null"),
        (b'{"a":null}', b"{}"),
        (b"[12345678901234567890123456789]", b"[12345678901234567890123456788]"),
        (b"[9007199254740993]", b"[9007199254740992]"),
        (b"[9007199254740993.0]", b"[9007199254740992.0]"),
        (b"[0.1234567890123456789]", b"[0.1234567890123456788]"),
        (b"[12345678901234567.89]", b"[12345678901234567.88]"),
        (b"[0.1234567890123456789]", b'["0.1234567890123456789"]'),
        (b"[1e400]", b"[2e400]"),
        (b"[1e99999999999999999999]", b"[2e99999999999999999999]"),
        (b"[1.0000000000000000e9999999]", b"[2.0000000000000000e9999999]"),
        (b"[1e-400]", b"[0]"),
        (b"[1.2345678901234567e-9999999]", b"[0]"),
        (b"[1.2345678e-320]", b"[1.2345679e-320]"),
        (b'"\xc3\xa9"', b'"e\xcc\x81"'),
        (b'{"a":1}', b'{"a":1'),
        (b"NaN", b"null"),
    ],
)
def test_these_are_not(one: bytes, two: bytes) -> None:
    assert of(one) != of(two)


@pytest.mark.parametrize(
    "body", [b"{", b"NaN", b'{"a":1}x', b'"\\ud800"', b'"\xff"', b"\xef\xbb\xbf1", b"[" * 100_000]
)
def test_what_is_not_json_is_compared_by_its_bytes(body: bytes) -> None:
    assert of(body) == of(body)
    assert of(body) != of(body + b" ")


def test_any_json_type_counts_and_parameters_do_not() -> None:
    one, two = b'{"a":1}', b'{ "a": 1 }'
    for kind in (b"application/JSON; charset=utf-8", b"application/vnd.api+json"):
        assert of(one, kind) == of(two, kind)
    assert of(one, b"text/plain") != of(two, b"text/plain")
    assert of(one, b"") != of(two, b"")


def test_method_path_and_query_count() -> None:
    first = of(b"1")
    assert of(b"1", method="PUT") != first
    assert of(b"1", path=b"/b") != first
    assert of(b"1", query=b"x=1") != first


def test_parts_cannot_run_into_each_other() -> None:
    assert of(b"", path=b"/a", query=b"b") != of(b"", path=b"/ab")
    assert of(b"x", b"", path=b"/a") != of(b"", b"", path=b"/ax")
    assert of(method="POST", path=b"S/a") != of(method="POSTS", path=b"/a")


@pytest.mark.parametrize("kind", [FORM, b""])
@pytest.mark.parametrize(
    "one, two, same",
    [
        (b"a=1&b=2", b"b=2&a=1", True),
        (b"a=1&a=2", b"a=2&a=1", False),
        (b"a=%41", b"a=A", True),
        (b"a=b+c", b"a=b%20c", True),
        (b"a=b%2Bc", b"a=b+c", False),
        (b"a=1&&b=2&", b"a=1&b=2", True),
        (b"a=1%26b=2", b"a=1&b=2", False),
        (b"a=", b"b=", False),
        (b"a=%FF", b"a=%FE", False),
    ],
)
def test_queries_and_forms_are_compared_by_their_pairs(
    kind: bytes, one: bytes, two: bytes, same: bool
) -> None:
    if kind:
        assert (of(one, kind) == of(two, kind)) is same
    else:
        assert (of(query=one) == of(query=two)) is same


def multipart(boundary: str, *parts: str) -> tuple[bytes, bytes]:
    body = "".join(f"--{boundary}\r\n{part}\r\n" for part in parts) + f"--{boundary}--\r\n"
    return body.encode(), f'multipart/form-data; boundary="{boundary}"'.encode()


def test_the_boundary_of_a_multipart_body_does_not_count() -> None:
    one = of(*multipart("xyz", "name: a\r\n\r\n1", "name: b\r\n\r\n2"))
    assert of(*multipart("other", "name: a\r\n\r\n1", "name: b\r\n\r\n2")) == one
    assert of(*multipart("xyz", "name: a\r\n\r\n1", "name: b\r\n\r\n3")) != one
    assert of(*multipart("xyz", "name: a\r\n\r\n1\r\nname: b\r\n\r\n2")) != one


def test_a_multipart_body_without_a_boundary_is_compared_by_its_bytes() -> None:
    assert of(b"a", b"multipart/form-data") != of(b"b", b"multipart/form-data")


@given(
    st.lists(st.text("xy-\r\n", max_size=12), max_size=4),
    st.lists(st.integers(1, 9), min_size=1, max_size=30),
    st.booleans(),
)
def test_a_body_in_pieces_is_the_body(parts: list[str], sizes: list[int], plain: bool) -> None:
    body, content_type = multipart("xy", *parts)
    content_type = b"text/plain" if plain else content_type
    whole, pieces = BodyDigest(content_type), BodyDigest(content_type)
    whole.feed(body)
    at = 0
    while at < len(body):
        size = sizes[at % len(sizes)]
        pieces.feed(body[at : at + size])
        at += size
    assert pieces.canonical() == whole.canonical()
    assert of(pieces, content_type) == of(whole, content_type)
    if not plain:
        assert of(body, content_type) == of(whole, content_type)


def test_a_digest_may_be_asked_twice() -> None:
    digest = BodyDigest(b"multipart/form-data; boundary=xy")
    digest.feed(b"--xy\r\n\r\na\r\n--xy--")
    assert digest.canonical() == digest.canonical()


def test_only_some_fields() -> None:
    by = Fingerprint.of_fields("amount", "card.number")
    one = of(b'{"amount":1,"card":{"number":"4","cvc":1},"sent":1}', by=by)
    assert of(b'{"sent":2,"card":{"cvc":2,"number":"4"},"amount":1.0}', by=by) == one
    assert of(b'{"amount":2,"card":{"number":"4"}}', by=by) != one
    assert of(b'{"amount":1}', by=by) != one
    assert of(b"[]", by=by) == of(b"{}", by=by)


def test_a_field_that_is_absent_is_not_null() -> None:
    by = Fingerprint.of_fields("a")
    assert of(b"{}", by=by) != of(b'{"a":null}', by=by)
    assert of(b'{"a":[null]}', by=by) != of(b'{"a":null}', by=by)


def test_fields_of_what_is_not_json_are_its_bytes() -> None:
    by = Fingerprint.of_fields("a")
    assert of(b"{", by=by) != of(b"{{", by=by)


def test_bytes() -> None:
    by = Fingerprint("bytes")
    assert of(b'{"a":1}', by=by) != of(b'{"a": 1}', by=by)
    assert of(b'{"a":1}', by=by) == of(b'{"a":1}', by=by)


def test_none_is_the_same_whatever_is_asked() -> None:
    by = Fingerprint("none")
    assert of(b"1", by=by) == of(b"2", path=b"/b", method="PUT", by=by) == NO_FINGERPRINT


def test_the_forms_cannot_be_mistaken_for_each_other() -> None:
    texts = {of(b"1", JSON), of(b"1", FORM), of(b"1", b""), of(b"1", by=Fingerprint("bytes"))}
    assert len(texts) == 3, "bytes of an unknown type and bytes by mode are the same thing"


def test_fields_need_names_and_only_they_have_them() -> None:
    with pytest.raises(ConfigurationError):
        Fingerprint("fields")
    with pytest.raises(ConfigurationError):
        Fingerprint("value", ("a",))


def test_a_fingerprint_stays_what_it_is() -> None:
    """It is stored: another one for the same request would refuse every retry."""
    made = of(b'{"item":"tea","quantity":1}', query=b"b=2&a=1", path=b"/orders")
    assert made.hex() == "166ee989062573def3e29c413d75526d"
