"""Where an answer ends, and what is refused before anyone can disagree about it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.upstream.chunks import MAX_LINE, MAX_TRAILERS, Chunks
from oncekey.upstream.framing import CHUNKED, UNTIL_CLOSED, Head, Heads, Malformed, head_of
from oncekey.upstream.reading import Reading
from tests.fixtures.answers import Case, answers, split

MAX_HEAD = 4096


def head(*lines: str, status: str = "HTTP/1.1 200 OK") -> Head:
    return head_of("\r\n".join([status, *lines, "", ""]).encode("latin-1"))


def feed_all(reader: Chunks | Reading, pieces: list[bytes]) -> None:
    for piece in pieces:
        reader.feed(piece)


def test_a_head_has_lower_case_names_and_no_blanks_around_values() -> None:
    read = head("Content-Type:  text/plain ", "X-Empty:", "X-Twice: a", "x-twice: b")
    assert read.status == 200
    assert read.headers == (
        (b"content-type", b"text/plain"),
        (b"x-empty", b""),
        (b"x-twice", b"a"),
        (b"x-twice", b"b"),
    )


def test_what_belongs_to_the_connection_stays_with_it() -> None:
    read = head(
        "Connection: keep-alive, X-Mine",
        "Keep-Alive: timeout=7, max=100",
        "X-Mine: secret",
        "Proxy-Authenticate: Basic",
        "Trailer: X-Sum",
        "Upgrade: h2c",
        "X-Yours: yes",
    )
    assert read.headers == ((b"x-yours", b"yes"),)
    assert read.patience == 7


@pytest.mark.parametrize(
    "lines, length",
    [
        (["Content-Length: 12"], 12),
        (["Content-Length: 0"], 0),
        (["Transfer-Encoding: Chunked"], CHUNKED),
        ([], UNTIL_CLOSED),
    ],
)
def test_the_length_of_a_body(lines: list[str], length: int) -> None:
    assert head(*lines).length == length


@pytest.mark.parametrize("status", [204, 304])
def test_some_answers_have_no_body_whatever_they_say(status: int) -> None:
    read = head("Content-Length: 12", status=f"HTTP/1.1 {status} Nothing")
    assert read.length == 0
    assert read.keeps
    assert (b"content-length", b"12") in read.headers


@pytest.mark.parametrize(
    "version, connection, keeps",
    [
        ("1.1", "", True),
        ("1.1", "Connection: close", False),
        ("1.1", "Connection: x, Close", False),
        ("1.0", "", False),
        ("1.0", "Connection: keep-alive", True),
    ],
)
def test_whether_a_connection_is_kept(version: str, connection: str, keeps: bool) -> None:
    lines = ["Content-Length: 1", *([connection] if connection else [])]
    assert head(*lines, status=f"HTTP/{version} 200 OK").keeps is keeps


def test_a_connection_whose_end_is_the_end_of_the_body_is_not_kept() -> None:
    assert not head("Connection: keep-alive").keeps


@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: 5", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Content-Length: 5"],
        ["Content-Length: 5", "Content-Length: 6"],
        ["Content-Length: 5", "Content-Length: 5"],
        ["Content-Length: 5, 5"],
        ["Content-Length: +5"],
        ["Content-Length: -5"],
        ["Content-Length: 0x5"],
        ["Content-Length: 5 5"],
        ["Content-Length: 99999999999999999999"],
        ["Content-Length: 9999999999999999999"],
        ["Content-Length:"],
        ["Transfer-Encoding: gzip, chunked"],
        ["Transfer-Encoding: chunked, gzip"],
        ["Transfer-Encoding: identity"],
        ["Transfer-Encoding: xchunked"],
        ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
        ["A: b\x00c"],
        ["A: b\rc"],
        ["A: b\nc: d"],
        ["A: b\x01"],
        ["A: b\x7f"],
        ["A: b", " folded"],
        ["A : b"],
        [" A: b"],
        [": b"],
        ["A"],
        ["Ä: b"],
    ],
)
def test_a_head_that_can_be_read_in_two_ways_is_refused(lines: list[str]) -> None:
    with pytest.raises(Malformed):
        head(*lines)


@pytest.mark.parametrize(
    "status",
    [
        "HTTP/1.1 20 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1  200 OK",
        "HTTP/1.1 200OK",
        "HTTP/1.1 abc OK",
        "HTTP/1.1 099 OK",
        "HTTP/1.1 600 OK",
        "HTTP/1.1 200 O\x00K",
        "HTTP/1.1 200 O\rK",
        "HTTP/1.1 101 Switching Protocols",
        "HTTP/2.0 200 OK",
        "HTTP/1.2 200 OK",
        "HTTP/0.9 200 OK",
        "http/1.1 200 OK",
        "ICY 200 OK",
        "",
        "\r\nHTTP/1.1 200 OK",
    ],
)
def test_a_status_line_that_is_none_is_refused(status: str) -> None:
    with pytest.raises(Malformed):
        head("Content-Length: 0", status=status)


def test_transfer_encoding_is_not_of_http_1_0() -> None:
    with pytest.raises(Malformed):
        head("Transfer-Encoding: chunked", status="HTTP/1.0 200 OK")


def test_heads_are_remembered_up_to_a_bound_and_read_the_same() -> None:
    heads = Heads(most=3)
    for number in [*range(10), *range(10)]:
        raw = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % number
        assert heads.read(raw) == head_of(raw)
        assert len(heads.known) <= 3


def test_heads_that_are_large_or_interim_are_not_remembered() -> None:
    heads = Heads()
    heads.read(b"HTTP/1.1 103 Early Hints\r\n\r\n")
    heads.read(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2000 + b"\r\n\r\n")
    assert not heads.known


# Chunks.


@pytest.mark.parametrize(
    "raw, body",
    [
        (b"0\r\n\r\n", b""),
        (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (b"A;name=value\r\n0123456789\r\n000\r\n\r\n", b"0123456789"),
        (b"3\r\n\r\n\n\r\n2\r\n0\r\r\n0\r\nX-Sum: 1\r\nY:\r\n\r\n", b"\r\n\n0\r"),
    ],
)
def test_chunks_are_undone_and_trailers_dropped(raw: bytes, body: bytes) -> None:
    chunks = Chunks()
    assert chunks.feed(raw) == body
    assert chunks.complete


@pytest.mark.parametrize(
    "raw",
    [
        b"\r\n",
        b"g\r\n",
        b"-1\r\n",
        b"+1\r\n",
        b"0x1\r\n",
        b"1_0\r\n",
        b" 5\r\nhello\r\n",
        b"5 \r\nhello\r\n",
        b"5\nhello\r\n",
        b"5\r\r\nhello\r\n",
        b"5;a=\x00\r\nhello\r\n",
        b"5\r\nhellox\r\n",
        b"5\r\nhello\n",
        b"5\r\nhello\r\n\r\n",
        b"fffffffffffffffff\r\n",
        b"0\r\nno trailer\r\n",
        b"0\r\n folded: x\r\n",
        b"0\r\nX: \x00\r\n",
        b"0\r\n\r\n\r\n",
        b"0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        b"1;" + b"x" * MAX_LINE,
        b"0\r\n" + b"X: y\r\n" * MAX_TRAILERS,
    ],
)
@pytest.mark.parametrize("piecewise", [False, True])
def test_bad_chunks_are_refused(raw: bytes, piecewise: bool) -> None:
    chunks = Chunks()
    pieces = [bytes([byte]) for byte in raw] if piecewise else [raw]
    with pytest.raises(Malformed):
        feed_all(chunks, pieces)


def test_chunks_that_stop_early_are_not_complete() -> None:
    whole = b"5\r\nhello\r\n0\r\n\r\n"
    for end in range(len(whole)):
        chunks = Chunks()
        chunks.feed(whole[:end])
        assert not chunks.complete


# Whole answers, in whatever pieces.


def read(case: Case, pieces: list[bytes]) -> tuple[Head, bytes]:
    reading = Reading(Heads(), MAX_HEAD, bodiless=case.bodiless)
    body = b""
    for piece in pieces:
        assert not reading.complete
        body += reading.feed(piece)
    if not reading.complete:
        reading.end()
    assert reading.complete
    assert reading.head is not None
    return reading.head, body


@given(answers(), st.lists(st.integers(0, 600), max_size=12))
def test_an_answer_is_the_same_in_whatever_pieces_it_comes(case: Case, cuts: list[int]) -> None:
    whole, body = read(case, [case.raw])
    assert (whole.status, body) == (case.status, case.body)
    assert read(case, split(case.raw, cuts)) == (whole, body)
    assert read(case, [bytes([byte]) for byte in case.raw]) == (whole, body)


@given(answers(), st.data())
def test_an_answer_that_stops_early_is_never_whole(case: Case, data: st.DataObject) -> None:
    reading = Reading(Heads(), MAX_HEAD, bodiless=case.bodiless)
    reading.feed(case.raw[: data.draw(st.integers(0, len(case.raw) - 1))])
    assert not reading.complete
    if reading.head is None or reading.head.length != UNTIL_CLOSED:
        with pytest.raises(Malformed):
            reading.end()


@given(answers(), st.binary(min_size=1, max_size=20))
def test_bytes_beyond_the_end_are_refused(case: Case, more: bytes) -> None:
    bodiless = case.bodiless or case.status in {204, 304}
    if case.ends == "closed" and not bodiless:
        return
    with pytest.raises(Malformed):
        Reading(Heads(), MAX_HEAD, bodiless=case.bodiless).feed(case.raw + more)


@given(st.binary(max_size=300))
def test_garbage_is_read_or_refused_and_nothing_else(garbage: bytes) -> None:
    for start in [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ]:
        try:
            Reading(Heads(), MAX_HEAD).feed(start + garbage)
        except Malformed:
            continue


def test_a_head_has_a_bound_and_interim_ones_count() -> None:
    fits = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: %b\r\n\r\n"
    fits %= b"x" * (MAX_HEAD - len(fits) + 2)
    assert len(fits) == MAX_HEAD
    assert Reading(Heads(), MAX_HEAD).feed(fits) == b""
    for raw in [
        fits.replace(b"X:", b"XX:"),
        fits.replace(b"X:", b"XX:")[:-4] + b"y" * 10,
        b"HTTP/1.1 100 Continue\r\n\r\n" + fits,
        b"HTTP/1.1 100 Continue\r\n\r\n" * MAX_HEAD,
    ]:
        with pytest.raises(Malformed):
            Reading(Heads(), MAX_HEAD).feed(raw)
        with pytest.raises(Malformed):
            feed_all(Reading(Heads(), MAX_HEAD), [bytes([byte]) for byte in raw])
