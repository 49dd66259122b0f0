"""Any body and any query: compared, read or refused, and never in two ways."""

import json
from contextlib import suppress
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.api.admin.table import ENDPOINTS as ADMIN_ENDPOINTS
from oncekey.api.endpoint import Parameter
from oncekey.api.requests import (
    before_in,
    body_of,
    bool_in,
    limit_in,
    query_of,
    seconds_in,
    wait_in,
    word_in,
)
from oncekey.api.table import ENDPOINTS
from oncekey.core.errors import InvalidInput
from oncekey.core.execution import (
    Status,
    execution_id_of,
    execution_number_of,
    promise_place_of,
)
from oncekey.core.model import number_of, operation_id_of
from oncekey.durable.address import address_of
from oncekey.durable.nesting import check_depth
from oncekey.durable.tokens import is_token
from oncekey.wire.body import Body
from oncekey.wire.fingerprint import BodyDigest, Fingerprint
from oncekey.wire.strict_json import object_in
from tests.fixtures.answers import split
from tests.fixtures.fuzzing import fuzz

KINDS = sorted({each.body for each in (*ENDPOINTS, *ADMIN_ENDPOINTS) if each.body}, key=str)
MEMBERS = sorted({name for kind in KINDS for name in kind.__struct_fields__})
numbers = st.from_regex(
    r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,25})?", fullmatch=True
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
documents = st.one_of(
    values.map(lambda value: json.dumps(value).encode()),
    numbers.map(str.encode),
    st.lists(numbers, max_size=4).map(lambda each: f"[{','.join(each)}]".encode()),
    st.integers(0, 3000).map(lambda depth: b"[" * depth + b"]" * depth),
    st.integers(0, 3000).map(lambda depth: b'{"a":' * depth + b"1" + b"}" * depth),
)
forms = st.lists(st.sampled_from([b"a=1", b"&", b"b", b"=", b"%", b"%zz", b"+", b"%00"])).map(
    b"".join
)
parts = st.lists(
    st.sampled_from([b"--x", b"\r\n", b"--", b"content-disposition: form-data; name=a", b"-", b"x"])
    | st.binary(max_size=9),
    max_size=20,
).map(b"".join)
bodies = documents | forms | parts | st.binary(max_size=200)
content_types = st.sampled_from(
    [
        b"application/json",
        b"application/problem+json; charset=utf-16",
        b"application/x-www-form-urlencoded",
        b"multipart/form-data; boundary=x",
        b'multipart/form-data; boundary="x"',
        b"multipart/form-data; boundary=",
        b"multipart/form-data",
        b"",
    ]
) | st.binary(max_size=30)
modes = st.sampled_from(
    [Fingerprint(), Fingerprint("bytes"), Fingerprint("none"), Fingerprint.of_fields("a", "b.c")]
)


@fuzz()
@given(modes, content_types, bodies, st.binary(max_size=20))
def test_every_body_has_a_fingerprint(
    mode: Fingerprint, content_type: bytes, body: bytes, query: bytes
) -> None:
    found = mode.of("POST", b"/", query, content_type, body)
    assert len(found) == 16
    assert found == mode.of("POST", b"/", query, content_type, bytes(bytearray(body)))


@fuzz()
@given(content_types, bodies, st.lists(st.integers(0, 200), max_size=6))
def test_a_body_in_pieces_is_the_same_body(
    content_type: bytes, body: bytes, cuts: list[int]
) -> None:
    whole, pieces = BodyDigest(content_type), BodyDigest(content_type)
    whole.feed(body)
    kept = Body(content_type, 1 << 20)
    for piece in split(body, cuts):
        pieces.feed(piece)
        kept.feed(piece)
    assert whole.canonical() == pieces.canonical()
    assert b"".join(kept.chunks()) == body


@fuzz()
@given(numbers, numbers)
def test_numbers_are_the_same_only_if_their_values_are(one: str, two: str) -> None:
    found = [
        Fingerprint().of("POST", b"/", b"", b"application/json", each.encode())
        for each in (one, two)
    ]
    # What is larger than anybody can write out is not counted here either.
    if all(len(each.lower().partition("e")[2]) < 5 for each in (one, two)):
        assert Fraction(one) == Fraction(two) or found[0] != found[1]


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
@fuzz()
@given(data=st.data())
def test_a_body_is_what_an_endpoint_takes_or_is_refused(kind: Any, data: Any) -> None:
    likely = st.dictionaries(st.sampled_from([*kind.__struct_fields__, *MEMBERS[:3]]), values)
    content = data.draw(likely.map(lambda value: json.dumps(value).encode()) | bodies)
    with suppress(InvalidInput):
        assert isinstance(body_of(content, kind), kind)


ALLOWED = [Parameter(name, "", {}) for name in ("limit", "before", "wait", "status", "park")]
assigned = st.sampled_from(
    ["limit=", "before=", "wait=", "status=", "park=", "&", ";", "%", "=", "+"]
)
queries = st.lists(
    assigned
    | st.text(max_size=6)
    | st.sampled_from(["1", "0", "-1", "9" * 30, "1e9", "٣", "30s", "inf"]),
    max_size=10,
).map(lambda each: "".join(each).encode("utf-8", "surrogatepass"))


@fuzz()
@given(queries)
def test_a_query_is_read_or_refused(text: bytes) -> None:
    for read in (
        limit_in,
        lambda query: before_in(query, execution_number_of, "no id"),
        lambda query: wait_in(query, 60.0),
        lambda query: word_in(query, "status", Status),
        lambda query: bool_in(query, "park"),
    ):
        try:
            found = read(query_of(text, ALLOWED))
        except InvalidInput:
            continue
        assert not isinstance(found, float) or 0 <= found <= 60
        assert type(found) is not int or 1 <= found <= 200


@fuzz()
@given(
    st.text(max_size=20)
    | st.from_regex(r"[0-9.]{0,9}(ms|s|m|h|d|w)?", fullmatch=True)
    | st.floats()
)
def test_a_length_of_time_is_bounded(given_: str | float) -> None:
    try:
        found = seconds_in("timeout", given_)
    except InvalidInput:
        return
    assert found is not None
    assert 0 < found <= 10 * 366 * 86400


ids = st.from_regex(r"(wf|tk|pr|op|ct)_[0-9a-f]{14,18}(:.{0,5})?\n?") | st.text(max_size=40)


@fuzz()
@given(ids)
def test_an_id_is_written_in_one_way_only(text: str) -> None:
    execution = execution_number_of(text)
    assert execution is None or execution_id_of(*execution) == text
    number = number_of(text)
    assert number is None or operation_id_of(number) == text
    place = promise_place_of(text)
    assert place is None or (place.name and text.endswith(f":{place.name}"))
    assert not is_token(text) or (len(text) == 46 and text.isascii())
    try:
        assert address_of(text)
    except InvalidInput:
        assert not text.startswith("ct_") or ":" in text


@fuzz()
@given(bodies)
def test_json_means_one_thing_or_is_refused(body: bytes) -> None:
    try:
        value = object_in(body)
    except ValueError:
        return
    assert json.loads(body) == value


@fuzz()
@given(bodies)
def test_depth_is_bounded(body: bytes) -> None:
    try:
        check_depth(body, "it")
    except InvalidInput:
        assert body.count(b"[") + body.count(b"{") > 200
