"""Any bytes on a line: from a service behind, which is read in one way or not at all, and from a
client, who is answered or hung up on, while everybody else is served."""

import re
import socket
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.edge.services.answers import read_failure
from oncekey.upstream.chunks import Chunks
from oncekey.upstream.framing import Heads, Malformed
from oncekey.upstream.reading import Reading
from tests.fixtures.answers import Case, answers, split
from tests.fixtures.fuzzed import FuzzedSite
from tests.fixtures.fuzzing import fuzz

MAX_HEAD = 4096
SNIPPETS = [
    b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 101 S\r\n", b"HTTP/2 200\r\n", b"\r\n", b"\n", b"\r",
    b"0\r\n",
    b"5\r\nhello\r\n", b"ffffffffffffffff\r\n", b"-1\r\n", b"1;a=b\r\n", b"Content-Length: 5\r\n",
    b"Content-Length: -1\r\n", b"Content-Length: 99999999999999999999\r\n",
    b"Connection: close\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n", b"X: y\r\n", b" folded\r\n",
    b"Keep-Alive: timeout=-1\r\n", b"\0", b"hello",
]  # fmt: skip
streams = st.lists(st.sampled_from(SNIPPETS) | st.binary(max_size=8), max_size=12).map(b"".join)


@st.composite
def altered(draw: st.DrawFn, raw: bytes) -> bytes:
    at = draw(st.integers(0, len(raw)))
    return raw[:at] + draw(st.binary(max_size=3)) + raw[at + draw(st.integers(0, 3)) :]


def verdict(pieces: list[bytes], *, bodiless: bool) -> tuple[object, ...]:
    """How an answer is read: its head, its body and its end, or nothing."""
    reading = Reading(Heads(), MAX_HEAD, bodiless=bodiless)
    body = b""
    try:
        for piece in pieces:
            body += reading.feed(piece)
        if not reading.complete:
            reading.end()
    except Malformed:
        return ("malformed",)
    return reading.head, body, reading.complete


@fuzz(100)
@given(streams, st.lists(st.integers(0, 120), max_size=8), st.booleans())
def test_any_answer_is_read_in_one_way(raw: bytes, cuts: list[int], bodiless: bool) -> None:
    found = verdict([raw], bodiless=bodiless)
    assert found == verdict(split(raw, cuts), bodiless=bodiless)
    assert found == verdict([bytes([byte]) for byte in raw], bodiless=bodiless)


@fuzz(100)
@given(answers(), st.data())
def test_an_answer_that_was_changed_is_read_in_one_way(case: Case, data: st.DataObject) -> None:
    raw = data.draw(altered(case.raw))
    cuts = data.draw(st.lists(st.integers(0, len(raw)), max_size=6))
    found = verdict([raw], bodiless=case.bodiless)
    assert found == verdict(split(raw, cuts), bodiless=case.bodiless)


@fuzz(100)
@given(streams)
def test_chunks_give_no_more_than_came(raw: bytes) -> None:
    chunks, given_ = Chunks(), 0
    with suppress(Malformed):
        for byte in raw:
            given_ += len(chunks.feed(bytes([byte])))
    assert given_ <= len(raw)


@fuzz()
@given(
    st.integers(0, 999),
    st.lists(
        st.tuples(
            st.sampled_from([b"x-restate-error-source", b"x-restate-id"]),
            st.sampled_from([b"invocation", b"ingress", b"\xff"]),
        ),
        max_size=2,
    ),
    streams | st.integers(1, 3000).map(lambda depth: b'{"message":' + b"[" * depth),
)
def test_a_failure_of_restate_is_told_whatever_it_says(
    status: int, headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    assert read_failure(status, tuple(headers), body) is not None


CHUNKED = (
    b"POST /api/tenants/default/promises HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'd\r\n{"name": "p"}\r\n0\r\n\r\n'
)
REQUESTS = [
    b"POST /shop/orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n\r\n{}",
    b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    CHUNKED,
    b"POST /api/v1/webhooks/stripe/wh_a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
    b"GET /edge/decide HTTP/1.1\r\nHost: a\r\nX-Original-Method: POST\r\nX-Original-URI: /\r\n\r\n",
    b"POST /console/sign-in HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nsecret=a",
]
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


def answered(site: FuzzedSite, raw: bytes) -> list[int]:
    """The statuses of all that comes back; the end of what is sent is told."""
    port = int(site.url.rpartition(":")[2])
    came = b""
    line = socket.create_connection(("127.0.0.1", port), timeout=20)
    with line, suppress(ConnectionError):
        line.sendall(raw)
        line.shutdown(socket.SHUT_WR)
        while piece := line.recv(65536):
            came += piece
    return [int(found) for found in STATUS.findall(came)]


@pytest.mark.parametrize("request_", REQUESTS, ids=[each.split()[1].decode() for each in REQUESTS])
def test_any_request_on_a_line_is_answered_or_hung_up_on(
    fuzzed_site: FuzzedSite, request_: bytes
) -> None:
    secret = f"Authorization: Bearer {fuzzed_site.secrets['caller']}\r\n".encode()
    known = request_.replace(b"Host: a\r\n", b"Host: a\r\n" + secret)

    @fuzz(15)
    @given(altered(known) | altered(known + known) | streams)
    def send(raw: bytes) -> None:
        assert all(status < 500 for status in answered(fuzzed_site, raw))

    send()
    assert 200 in answered(fuzzed_site, b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
