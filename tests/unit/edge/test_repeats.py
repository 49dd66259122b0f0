"""What is read as a repeated request is what a strict parser reads in the same bytes."""

from typing import Any

import httptools
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from oncekey.edge.asked import Asked
from oncekey.edge.serving.repeats import Repeat, learned
from oncekey.wire.headers import lines_of

HEAD = (
    b"POST /orders?a=1 HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer a.b.c\r\n"
    b"Idempotency-Key: k1\r\nX-Request-Id: r1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 8\r\ntraceparent: 00-ab-cd-01\r\nX-More:  spaced \r\n\r\n"
)
BODY = b'{"a": 1}'
WHOLE = HEAD + BODY


class Parsed:
    """Every request in some bytes, and whether something was left over."""

    def __init__(self, data: bytes) -> None:
        self.requests: list[tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]] = []
        self._parser = httptools.HttpRequestParser(self)
        self._open = False
        try:
            self._parser.feed_data(data)
            self.whole = not self._open
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.whole = False

    def on_message_begin(self) -> None:
        self._open = True
        self._url, self._body = b"", b""
        self._headers: list[tuple[bytes, bytes]] = []

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        self._open = False
        method = self._parser.get_method()
        self.requests.append((method, self._url, self._headers, self._body))


def asked_in(data: bytes) -> tuple[Asked, bytes]:
    ((method, url, headers, body),) = Parsed(data).requests
    path, _, query = url.partition(b"?")
    asked = Asked(method.decode(), path.decode(), path, query, headers, "127.0.0.1", "http")
    return asked, body


def learn(data: bytes) -> Repeat | None:
    asked, body = asked_in(data)
    return learned(data, asked, body, b"digest")


def pattern(data: bytes = WHOLE) -> Repeat:
    repeat = learn(data)
    assert repeat is not None
    return repeat


def check(repeat: Repeat, data: bytes) -> bool:
    """Whether it is read as a repeat; then it is all that the parser finds there."""
    again = repeat.read(data)
    if again is None:
        return False
    parsed = Parsed(data)
    assert parsed.whole
    ((method, url, headers, body),) = parsed.requests
    asked = repeat.asked(again.values)
    assert (asked.method.encode(), asked.target, asked.headers) == (method, url, headers)
    assert again.body == body
    assert repeat.lines(again.values) == lines_of(headers)
    fresh = [*repeat.same.headers, *repeat.fresh(again.values)]
    apart = {b"idempotency-key", b"content-length"}
    assert sorted(fresh) == sorted(pair for pair in headers if pair[0] not in apart)
    return True


@pytest.mark.parametrize(
    "data",
    [
        WHOLE,
        WHOLE.replace(b"k1", b'"another:key"'),
        HEAD.replace(b": 8", b": 2") + b"{}",
        HEAD.replace(b": 8", b": 0"),
        HEAD.replace(b": 8", b": 65000") + b"x" * 65000,
        WHOLE.replace(b"r1", b"r-2").replace(b"00-ab", b"00-ef"),
    ],
)
def test_what_clients_change_is_read_anew(data: bytes) -> None:
    assert check(pattern(), data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        WHOLE[:-1],
        WHOLE + b"x",
        WHOLE + b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\r\n" + WHOLE,
        WHOLE.replace(b"/orders", b"/order"),
        WHOLE.replace(b"a.b.c", b"a.b.d"),
        WHOLE.replace(b"/json", b"/text"),
        WHOLE.replace(b"spaced", b"placed"),
        WHOLE.replace(b"k1", b""),
        WHOLE.replace(b"k1", b"k 1"),
        WHOLE.replace(b"k1", b" k1"),
        WHOLE.replace(b"k1", b"k\n"),
        WHOLE.replace(b"k1", b"k1\r\nTransfer-Encoding: chunked"),
        WHOLE.replace(b"k1", b"x" * 256),
        WHOLE.replace(b": 8", b": 08"),
        WHOLE.replace(b": 8", b": +8"),
        WHOLE.replace(b": 8", b": 8, 8"),
        WHOLE.replace(b": 8", b":  8"),
        WHOLE.replace(b"\r\n\r\n", b"\r\nX: y\r\n\r\n"),
        WHOLE.replace(b"Idempotency-Key", b"idempotency-key"),
        WHOLE.replace(b"\r\n", b"\n"),
        HEAD.replace(b": 8", b": 100000") + b"x" * 100_000,
    ],
)
def test_anything_else_is_left_to_the_parser(data: bytes) -> None:
    assert pattern().read(data) is None


@pytest.mark.parametrize(
    "data",
    [
        WHOLE.replace(b"X-More:  spaced ", b"Idempotency-Key: k2"),
        WHOLE.replace(b"X-More:  spaced ", b"X-Request-Id: r2"),
        WHOLE.replace(b"X-More:  spaced ", b"Connection: x-request-id"),
        WHOLE.replace(b"k1", b"a key"),
        WHOLE.replace(b"Key: k1", b"Key:k1"),
        WHOLE.replace(b": 8", b": 008"),
        WHOLE.replace(b"HTTP/1.1", b"HTTP/1.0"),
        WHOLE.replace(b"X-More", b"X-" + b"m" * 9000),
    ],
)
def test_what_could_be_read_in_two_ways_is_no_pattern(data: bytes) -> None:
    assert learn(data) is None


@pytest.mark.parametrize("before", [b"\r\n", b"rest of a body", WHOLE])
def test_only_a_request_that_came_alone_is_a_pattern(before: bytes) -> None:
    asked, body = asked_in(WHOLE)
    assert learned(before + WHOLE, asked, body, b"digest") is None
    assert learned(WHOLE + before, asked, body, b"digest") is None


def test_a_request_still_says_what_it_said_when_the_next_is_read() -> None:
    repeat = pattern()
    first, again = repeat.read(WHOLE), repeat.read(WHOLE.replace(b"k1", b"k2"))
    assert first is not None
    assert again is not None
    asked = repeat.asked(first.values)
    repeat.asked(again.values)
    assert asked.headers == asked_in(WHOLE)[0].headers


def test_what_the_parser_read_otherwise_is_no_pattern() -> None:
    """It alone knows what the lines say: they are looked at here only to find them again."""
    asked, body = asked_in(WHOLE)
    (name, value), *others = asked.headers
    for headers in (
        [(name, value + b"."), *others],
        [(name + b"s", value), *others],
        [*others, (name, value)],
        others,
        [*asked.headers, (b"x-folded", b"1")],
    ):
        assert learned(WHOLE, asked._replace(headers=headers), body, b"digest") is None


@pytest.mark.parametrize(
    "request_", [b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n", b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n"]
)
def test_a_request_without_anything_fresh_repeats_itself(request_: bytes) -> None:
    assert check(pattern(request_), request_)
    assert pattern(request_).read(request_ + b"x") is None


EDITS = st.tuples(
    st.integers(0, len(WHOLE)),
    st.integers(0, 6),
    st.binary(max_size=4) | st.sampled_from([b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b"1", b"k"]),
)


@given(st.lists(EDITS, max_size=3))
@example([(HEAD.index(b"k1"), 2, b"k2")])
def test_whatever_is_changed_both_read_the_same(edits: list[tuple[int, int, bytes]]) -> None:
    data = WHOLE
    for place, removed, added in edits:
        data = data[:place] + added + data[place + removed :]
    check(pattern(), data)


WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)


@given(WORDS, WORDS, st.binary(max_size=300))
def test_every_word_is_read_as_it_is(key: str, request_id: str, body: bytes) -> None:
    data = HEAD.replace(b"k1", key.encode()).replace(b"r1", request_id.encode())
    data = data.replace(b": 8", b": %d" % len(body)) + body
    assert check(pattern(), data)


@given(st.lists(st.tuples(WORDS, WORDS), max_size=4), st.data())
def test_every_head_makes_a_pattern_of_itself_or_none(
    lines: list[tuple[str, str]], data: st.DataObject
) -> None:
    more = "".join(f"{name}: {value}\r\n" for name, value in lines).encode()
    whole = HEAD.replace(b"X-More:  spaced \r\n", more) + BODY
    parsed: Any = Parsed(whole)
    assume(parsed.whole and len(parsed.requests) == 1)
    repeat = learn(whole)
    if repeat is not None:
        assert check(repeat, whole)
        cut = data.draw(st.integers(0, len(whole)))
        check(repeat, whole[:cut] + data.draw(st.binary(max_size=3)) + whole[cut:])
