"""Requests hidden in requests: the service behind sees those that were let in, each as it was sent,
and not one more."""

import pytest

from tests.fixtures.stronghold import Stronghold, bearer, head, is_refused

# It would be let in by itself, so that nothing but its being hidden keeps it from being run.
HIDDEN = head("/api/v1/notes", "X-Hidden: yes")
ORDERS = "/api/v1/orders"
CHUNKED = "Transfer-Encoding: chunked"


def chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


def order(*lines: str, **options: object) -> bytes:
    return head(ORDERS, *lines, key="k", **{"length": None, **options})  # type: ignore[arg-type]


# Two readers would see two ends of the first request, or two first requests.
AMBIGUOUS = {
    "length and chunks": order("Content-Length: 5", CHUNKED) + b"0\r\n\r\n" + HIDDEN,
    "chunks and length": order(CHUNKED, f"Content-Length: {len(HIDDEN) + 5}")
    + b"0\r\n\r\n"
    + HIDDEN,
    "two lengths": order("Content-Length: 0", f"Content-Length: {len(HIDDEN)}") + HIDDEN,
    "the same length twice": order("Content-Length: 2", "Content-Length: 2") + b"{}" + HIDDEN,
    "a list of lengths": order(f"Content-Length: 0, {len(HIDDEN)}") + HIDDEN,
    "a list of equal lengths": order("Content-Length: 2, 2") + b"{}" + HIDDEN,
    "a signed length": order("Content-Length: +0") + HIDDEN,
    "a negative length": order("Content-Length: -1") + HIDDEN,
    "a length in hexadecimal": order("Content-Length: 0x0") + HIDDEN,
    "a length of two numbers": order(f"Content-Length: 0 {len(HIDDEN)}") + HIDDEN,
    "an empty length": order("Content-Length:") + HIDDEN,
    "a length with a fraction": order("Content-Length: 0.0") + HIDDEN,
    "a length that overflows": order("Content-Length: 18446744073709551616") + HIDDEN,
    "a length of other digits": order("Content-Length: \xb2") + b"{}" + HIDDEN,
    "a folded length": order(f"Content-Length:\r\n {len(HIDDEN)}") + HIDDEN,
    "a blank before the colon": order("Transfer-Encoding : chunked") + b"0\r\n\r\n" + HIDDEN,
    "a coding nobody knows": order("Transfer-Encoding: xchunked") + b"0\r\n\r\n" + HIDDEN,
    "no coding": order("Transfer-Encoding: identity") + HIDDEN,
    "an empty coding": order("Transfer-Encoding:") + HIDDEN,
    "chunks, then none": order("Transfer-Encoding: chunked, identity") + b"0\r\n\r\n" + HIDDEN,
    "none, then chunks": order("Transfer-Encoding: identity, chunked") + b"0\r\n\r\n" + HIDDEN,
    "packed, then chunks": order("Transfer-Encoding: gzip, chunked") + b"0\r\n\r\n" + HIDDEN,
    "chunks twice": order("Transfer-Encoding: chunked, chunked") + b"0\r\n\r\n" + HIDDEN,
    "two codings": order("Transfer-Encoding: identity", CHUNKED) + b"0\r\n\r\n" + HIDDEN,
    "two codings, turned": order(CHUNKED, "Transfer-Encoding: identity") + b"0\r\n\r\n" + HIDDEN,
    "the same coding twice": order(CHUNKED, CHUNKED) + b"0\r\n\r\n" + HIDDEN,
    "a quoted coding": order('Transfer-Encoding: "chunked"') + b"0\r\n\r\n" + HIDDEN,
    "a coding with a parameter": order("Transfer-Encoding: chunked;q=1") + b"0\r\n\r\n" + HIDDEN,
    "a coding after a tab": order("Transfer-Encoding:\x0bchunked") + b"0\r\n\r\n" + HIDDEN,
    "a folded coding": order("Transfer-Encoding:\r\n chunked") + b"0\r\n\r\n" + HIDDEN,
    "a coding before NUL": order("Transfer-Encoding: chunked\x00") + b"0\r\n\r\n" + HIDDEN,
    "bare LF": order("Content-Length: 0").replace(b"\r\n", b"\n") + HIDDEN,
    "one bare LF": order("X-Other: 1\nTransfer-Encoding: chunked") + b"0\r\n\r\n" + HIDDEN,
    "a bare CR": order("X-Other: 1\rContent-Length: 5") + HIDDEN,
    "an empty line of LF": order("Content-Length: 0").replace(b"\r\n\r\n", b"\n\n") + HIDDEN,
    "a chunk of LF": order(CHUNKED) + b"0\n\n" + HIDDEN,
    "a negative chunk": order(CHUNKED) + b"-1\r\n\r\n" + HIDDEN,
    "a chunk with a sign": order(CHUNKED) + b"+0\r\n\r\n" + HIDDEN,
    "a chunk in another notation": order(CHUNKED) + b"0x0\r\n\r\n" + HIDDEN,
    "a chunk with a blank": order(CHUNKED) + b"0 \r\n\r\n" + HIDDEN,
    "a chunk that overflows": order(CHUNKED) + b"10000000000000000\r\n" + HIDDEN,
    "a chunk without a size": order(CHUNKED) + b"\r\n0\r\n\r\n" + HIDDEN,
    "a chunk that goes on": order(CHUNKED) + b"2\r\n{}x\r\n0\r\n\r\n" + HIDDEN,
    "a chunk whose extension ends in LF": order(CHUNKED) + b"2;a\n{}\r\n0\r\n\r\n" + HIDDEN,
    "a trailer with a length": order(CHUNKED) + b"0\r\nContent-Length: 9\r\n\r\n" + HIDDEN,
    "two hosts": order("Host: other.example", length=0) + HIDDEN,
    "no host": order(length=0).replace(b"Host: edge.example\r\n", b"") + HIDDEN,
    "a version to come": order(length=0).replace(b"HTTP/1.1", b"HTTP/2.0") + HIDDEN,
    "a version that is none": order(length=0).replace(b"HTTP/1.1", b"HTTP/1.9") + HIDDEN,
    "a version of long ago": b"GET /api/v1/orders\r\n\r\n" + HIDDEN,
    "a method in small letters": order(length=0).replace(b"POST", b"post", 1) + HIDDEN,
    "a blank before the method": b" " + order(length=0) + HIDDEN,
    "a tab in the first line": order(length=0).replace(b"POST ", b"POST\t", 1) + HIDDEN,
    "blanks behind the version": order(length=0).replace(b"HTTP/1.1\r", b"HTTP/1.1 \r", 1) + HIDDEN,
    "another protocol": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + HIDDEN,
    "a tunnel": b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n" + HIDDEN,
    "a tunnel with a path": order(length=0).replace(b"POST", b"CONNECT", 1) + HIDDEN,
    "a handshake of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + HIDDEN,
    "nothing but bytes": bytes(range(256)) + HIDDEN,
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_what_can_be_read_in_two_ways_is_read_in_none(fort: Stronghold, name: str) -> None:
    assert is_refused(fort, AMBIGUOUS[name])
    assert fort.effects == []


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_nor_is_it_when_it_comes_in_pieces(fort: Stronghold, name: str) -> None:
    """Each piece is there before the next is sent: the edge answers something in between."""
    whole = AMBIGUOUS[name]
    end = whole.find(b"\n") + 1 or len(whole) // 2
    with fort.wire(whole[:end]) as wire:
        assert fort.ask("GET", ORDERS, bearer=bearer()).status_code == 200
        wire.send(whole[end:])
        assert wire.answer().status in {400, 431}
        assert wire.is_over()
    assert [each.method for each in fort.effects] == ["GET"]


@pytest.mark.parametrize("path", ["/api/v1/notes", "/api/v1/pings", "/open/notes"])
@pytest.mark.parametrize("name", [name for name in AMBIGUOUS if name.startswith("a ")])
def test_nor_where_bodies_are_handed_on_as_they_come(
    fort: Stronghold, path: str, name: str
) -> None:
    """Nothing of it is on its way before all of its head is known to be good."""
    assert is_refused(fort, AMBIGUOUS[name].replace(ORDERS.encode(), path.encode(), 1))
    assert fort.effects == []


BODIES = {
    "with a length": lambda body: order(length=len(body)) + body,
    "in one chunk": lambda body: order(CHUNKED) + chunk(body) + b"0\r\n\r\n",
    "in chunks of a byte": lambda body: (
        order(CHUNKED) + b"".join(chunk(body[i : i + 1]) for i in range(len(body))) + b"0\r\n\r\n"
    ),
    "in chunks with extensions": lambda body: (
        order(CHUNKED) + chunk(body).replace(b"\r\n", b';a="\\"b";c\r\n', 1) + b"0;d=e\r\n\r\n"
    ),
    "with a trailer": lambda body: order(CHUNKED) + chunk(body) + b"0\r\nX-Hidden: yes\r\n\r\n",
    "with zeros before the length": lambda body: order(f"Content-Length: 000{len(body)}") + body,
    "asked for": lambda body: order("Expect: 100-continue", length=len(body)) + body,
    "with another protocol offered": lambda body: (
        order("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk",
              length=len(body)) + body
    ),
    "in chunks, with another protocol offered": lambda body: (
        order("Connection: upgrade", "Upgrade: h2c", CHUNKED) + chunk(body) + b"0\r\n\r\n"
    ),
    "with a socket offered": lambda body: (
        order("Connection: upgrade", "Upgrade: websocket", length=len(body)) + body
    ),
    "by HTTP/1.0": lambda body: (
        order("Connection: keep-alive", length=len(body)).replace(b"HTTP/1.1", b"HTTP/1.0") + body
    ),
    "large": lambda body: (
        order(length=100_000 + len(body)) + b" " * 50_000 + body + b" " * 50_000
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("pieces", [1, 2])
def test_a_request_in_a_body_is_a_body(fort: Stronghold, name: str, pieces: int) -> None:
    """Also when the body comes by itself, where a reader could begin anew."""
    request = BODIES[name](HIDDEN).replace(b"Key: k", f"Key: {[*BODIES].index(name)}".encode(), 1)
    request = request.replace(
        b"\r\nIdempotency-Key", f"\r\nX-Round: {pieces}\r\nIdempotency-Key".encode()
    )
    request = request.replace(ORDERS.encode(), b"/api/v1/notes", 1) if pieces == 2 else request
    end = request.find(b"\r\n\r\n") + 4
    with fort.wire(request[:end]) as wire:
        if pieces == 2:
            assert fort.ask("GET", ORDERS, bearer=bearer()).status_code == 200
        answer = wire.send(request[end:]).answer()
        assert answer.status == 201
        if answer["connection"] != "close":
            # Whatever is left over would be taken for the beginning of this one.
            assert wire.send(head(ORDERS, method="GET", length=None)).answer().status == 200
    (effect, *others) = [each for each in fort.effects if each.method == "POST"]
    assert others == []
    assert effect.body.strip() == HIDDEN.strip() or effect.body == HIDDEN
    assert effect["x-hidden"] == []
    assert len(effect["content-length"] + effect["transfer-encoding"]) == 1
    assert effect["upgrade"] == effect["http2-settings"] == effect["expect"] == []


@pytest.mark.parametrize("name", BODIES)
def test_a_body_like_the_request_before_it_is_a_body(fort: Stronghold, name: str) -> None:
    """Requests that repeat the last one of their connection are read faster: this is none."""
    key = f"Key: after-{[*BODIES].index(name)}".encode()
    request = BODIES[name](HIDDEN).replace(b"Key: k", key, 1)
    head_, hidden, rest = request.partition(HIDDEN)
    with fort.wire(HIDDEN) as wire:
        assert wire.answer().status == 201
        assert wire.send(HIDDEN).answer().status == 201
        for piece in (head_, hidden, rest):
            wire.send(piece)
            assert fort.ask("GET", ORDERS, bearer=bearer()).status_code == 200
        assert wire.answer().status == 201
    effects = [each for each in fort.effects if each.method == "POST"]
    assert [each["x-hidden"] for each in effects].count(["yes"]) == 2
    assert len(effects) == 3


@pytest.mark.parametrize("size", [0, 100_000])
@pytest.mark.parametrize("who", [None, "forged"])
def test_nor_is_the_body_of_a_request_that_was_refused(
    fort: Stronghold, size: int, who: str | None
) -> None:
    refused = head(ORDERS, key="k", length=size + len(HIDDEN), credentials=who)
    with fort.wire(HIDDEN) as wire:
        assert wire.answer().status == 201
        wire.send(refused)
        assert fort.ask("GET", ORDERS, bearer=bearer()).status_code == 200
        wire.send(HIDDEN)
        assert fort.ask("GET", ORDERS, bearer=bearer()).status_code == 200
        wire.send(b" " * size)
        assert wire.answer().status == 401
    assert [each["x-hidden"] for each in fort.effects].count(["yes"]) == 1


def test_a_body_where_none_is_wanted_is_a_body(fort: Stronghold) -> None:
    for method in ("GET", "HEAD"):
        request = head(ORDERS, method=method, length=len(HIDDEN)) + HIDDEN
        with fort.wire(request + head(ORDERS, method="GET", length=None)) as wire:
            assert wire.answer(bodiless=method == "HEAD").status == 200
            assert wire.answer().status == 200
    assert [each.method for each in fort.effects] == ["GET", "GET", "HEAD", "GET"]
    assert [each.body for each in fort.effects] == [HIDDEN, b"", HIDDEN, b""]


def test_nothing_is_run_behind_the_last_request(fort: Stronghold) -> None:
    """Who closes has said all; what follows is somebody else's, put behind it."""
    last = order("Connection: close", length=0)
    old = order("Connection: keep-alive", length=0).replace(b"HTTP/1.1", b"HTTP/1.0")
    for first in (
        last,
        old,
        last.replace(b"Key: k", b"Key: a:b"),
        old.replace(b"Key: k", b"Key: a:b"),
    ):
        with fort.wire(first + HIDDEN + HIDDEN) as wire:
            wire.answer()
            assert wire.is_over()
    assert [each.target for each in fort.effects] == [ORDERS]


def test_a_broken_request_does_not_spoil_the_answer_before_it(fort: Stronghold) -> None:
    slow = head(ORDERS, 'x-do: {"sleep": 0.3}', key="first")
    for broken in (b"broken\r\n\r\n", order("Content-Length: x"), order(CHUNKED, CHUNKED)):
        with fort.wire(slow.replace(b"first", b"first-%d" % len(broken)) + broken + HIDDEN) as wire:
            assert wire.answer().status == 201
            assert wire.is_over()
    assert [each.target for each in fort.effects] == [ORDERS] * 3


def test_every_pipelined_request_has_the_answer_that_is_its_own(fort: Stronghold) -> None:
    """Bob's and alice's on one connection, as a gateway would send them."""
    bob = bearer(subject="user:bob")
    requests = b"".join(
        head(ORDERS, key=f"p{number}", credentials=bob if number % 2 else "")
        for number in range(40)
    )
    with fort.wire(requests) as wire:
        answers = [wire.answer() for _ in range(40)]
    told = [(each.whose[2], each.key) for each in fort.effects]
    assert sorted(told) == sorted(
        (who, f"t-acme:shop:{who}:p{number}")
        for number in range(40)
        for who in ["user:bob" if number % 2 else "user:alice"]
    )
    for number, answer in enumerate(answers):
        who = "user:bob" if number % 2 else "user:alice"
        assert f'"t-acme:shop:{who}:p{number}"'.encode() in answer.body


def test_what_the_service_behind_breaks_off_is_not_the_answer_to_the_next(fort: Stronghold) -> None:
    """An answer with a second one behind it: connections to it are shared by all callers."""
    forged = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged"
    do = f'{{"headers": [["content-type", "text/plain"]], "body": {forged!r}}}'.replace("'", '"')
    with fort.wire(head(ORDERS, f"x-do: {do}", method="GET", length=None)) as wire:
        assert wire.answer().body.decode() == forged
    for _ in range(5):
        answer = fort.ask("GET", ORDERS, bearer=bearer(subject="user:bob"))
        assert b"forged" not in answer.content
